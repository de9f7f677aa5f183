package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// This file turns a site into what is kept of it in the store, and back.

// These bound a site that is written into the store. One that is there already may have more.
const (
	maxHosts  = 100
	maxThemes = 100

	// maxKept bounds the settings and secrets, in bytes: that of 100 themes with long addresses and tokens. Each edge
	// reads those of all sites when it starts.
	maxKept = 128 << 10
)

var errTooManyThemes = &Mistake{Option: "themes", Text: fmt.Sprintf("a site in the store has at most %d", maxThemes)}

// Secrets of a stored site, by where they belong.
const adminKeySecret = "platform.admin_key"

const mailSecret = "mail.url"

func tokenSecret(theme string) string { return "themes." + theme + ".repository.token" }

func (s *Site) secretsOf() map[string]*string {
	secrets := make(map[string]*string)
	if s.Platform != nil {
		secrets[adminKeySecret] = &s.Platform.AdminKey
	}
	if s.Mail != nil && !s.Mail.isOff() {
		secrets[mailSecret] = &s.Mail.URL
	}
	for name, theme := range s.Themes {
		if theme != nil && theme.Repository != nil {
			secrets[tokenSecret(name)] = &theme.Repository.Token
		}
	}
	return secrets
}

// ForStore checks a site, and returns what is kept of it under a name. An error says
// what to write, by the path of the field.
func (s *Site) ForStore(name string) (sites.Site, error) {
	hosts, err := s.checkForStore(name)
	if err != nil {
		return sites.Site{}, JSONText(err)
	}
	kept := sites.Site{Name: name, Hosts: hosts, Secrets: make(map[string]string)}
	rest := s.clone()
	for of, secret := range rest.secretsOf() {
		if *secret != "" {
			kept.Secrets[of], *secret = *secret, ""
		}
	}
	rest.Hosts = nil
	if kept.Settings, err = json.Marshal(rest); err != nil {
		return sites.Site{}, err
	}
	size := len(kept.Settings)
	for _, secret := range kept.Secrets {
		size += len(secret)
	}
	if size > maxKept {
		return sites.Site{}, fmt.Errorf("its settings have %d bytes: a site in the store has at most %d", size, maxKept)
	}
	return kept, nil
}

func (s *Site) clone() *Site {
	c := &Site{
		Hosts: slices.Clone(s.Hosts), Integrations: maps.Clone(s.Integrations), Themes: make(map[string]*Theme),
		StaffIntegrations: s.StaffIntegrations,
	}
	if !s.TakesRegistrations() { // what is as by default is kept as if it was not written
		c.Registration = s.Registration
	}
	if s.Platform != nil {
		c.Platform = new(*s.Platform)
	}
	if s.Mail != nil {
		c.Mail = new(*s.Mail)
	}
	for name, theme := range s.Themes {
		c.Themes[name] = new(Theme)
		if theme != nil && theme.Repository != nil {
			c.Themes[name].Repository = new(*theme.Repository)
		}
	}
	return c
}

// FromStore converts a site of the store. It lacks its secrets if they cannot be opened.
func FromStore(kept sites.Site) (*Site, error) {
	type plain Site
	s := new(Site)
	err := kept.Damaged
	if err == nil {
		err = ReadJSON(kept.Settings, (*plain)(s)) // refuses what a later Lychgate has added
	}
	if s.Hosts = kept.Hosts; err == nil {
		err = s.checkKept()
	}
	if err != nil {
		return nil, fmt.Errorf("its row is damaged, or of a later Lychgate: %w", JSONText(err))
	}
	for of, secret := range s.secretsOf() {
		*secret = kept.Secrets[of]
	}
	return s, nil
}

// checkKept checks what the rest relies upon.
func (s *Site) checkKept() error {
	if len(s.Hosts) == 0 {
		return errNoHosts
	}
	for _, host := range s.Hosts {
		if parsed, err := parseHost(host); err != nil || parsed != host {
			return cmp.Or(err, wrongHost(host, "is not as it appears in requests"))
		}
	}
	if _, ok := s.Platform.Of(); !ok {
		return &Mistake{Option: "platform", Text: "there is none, or none that is known here"}
	}
	for name, theme := range s.Themes {
		if theme == nil || theme.Repository == nil {
			return inTheme(name, errNoRepository)
		}
	}
	return s.checkLiteral()
}

// checkForStore checks all that can be without asking anybody, and returns the hosts as
// they appear in requests.
func (s *Site) checkForStore(name string) (hosts []string, err error) {
	if err := CheckSiteName(name); err != nil {
		return nil, err
	}
	if len(s.Themes) > maxThemes { // before reading them all takes long
		return nil, errTooManyThemes
	}
	if err := cmp.Or(s.checkLiteral(), s.checkShown()); err != nil {
		return nil, err
	}
	if len(s.Integrations) > 0 {
		return nil, &Mistake{Option: "integrations", Text: "add them to the site, when it is there, one by one: their keys are made here"}
	}
	for _, host := range s.Hosts {
		parsed, err := parseHost(host)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(hosts, parsed) {
			hosts = append(hosts, parsed)
		}
		if len(hosts) > maxHosts { // before comparing them all takes long
			return nil, &Mistake{Option: "hosts", Text: fmt.Sprintf("a site in the store has at most %d", maxHosts)}
		}
	}
	switch {
	case len(hosts) == 0:
		return nil, errNoHosts
	case s.Platform == nil:
		return nil, errNoPlatformInStore()
	}
	kind, ok := s.Platform.Of()
	if !ok {
		return nil, errNoPlatformInStore()
	}
	if err := s.Platform.checkUnused(); err != nil {
		return nil, s.Platform.in(err)
	}
	if !kind.Key.IsZero() && s.Platform.AdminKey == "" {
		return nil, s.Platform.in(&Mistake{Option: "admin_key", Text: "needs " + kind.Key.Source})
	}
	literal := Placeholders{}
	if _, err := s.Platform.resolve(literal); err != nil {
		return nil, err
	}
	if _, err := s.WebhookAddress(literal, hosts); err != nil {
		return nil, err
	}
	if _, err := s.Mail.Resolve(literal); err != nil {
		return nil, err
	}
	return hosts, s.checkThemes(literal)
}

// checkUnused refuses settings that the platform's kind has not.
func (p *Platform) checkUnused() error {
	for _, option := range p.Options() {
		if *option.Value != "" && !p.Has(option.Name) {
			return &Mistake{Option: option.Name, Text: "platform " + p.Kind + " has none: leave it out, or write null to take it away"}
		}
	}
	return nil
}

// literals are the values in which elsewhere a placeholder might stand, by field. In the
// store they are taken as they are.
func (s *Site) literals() map[string]string {
	values := map[string]string{"hosts": strings.Join(s.Hosts, " ")}
	if p := s.Platform; p != nil {
		values["platform.kind"] = p.Kind
		for _, option := range p.Options() {
			values["platform."+option.Name] = *option.Value
		}
	}
	if s.Mail != nil {
		values[mailSecret], values["mail.from"] = s.Mail.URL, s.Mail.From
	}
	for name, theme := range s.Themes {
		if theme == nil || theme.Repository == nil {
			continue
		}
		r, of := theme.Repository, "themes."+name+".repository."
		values[of+"url"], values[of+"branch"], values[tokenSecret(name)], values[of+"user"] = r.URL, r.Branch, r.Token, r.User
	}
	return values
}

// checkLiteral refuses placeholders: a site in the store has the values themselves, so
// that someone who may write there reads nothing of an edge's environment.
func (s *Site) checkLiteral() error {
	values, secrets := s.literals(), s.secretsOf()
	for _, field := range slices.Sorted(maps.Keys(values)) {
		found := braces.FindString(values[field])
		if found == "" {
			continue
		}
		what := quote(found) + " is"
		if secrets[field] != nil { // nothing of it is shown
			what = "there is"
		}
		return &Mistake{Option: field, Text: what + " a placeholder, which a site in the store cannot have: write the value itself"}
	}
	return nil
}

// braces matches whatever Caddy might take for a placeholder.
var braces = regexp.MustCompile(`(?s)\{[^{}]+\}|\{.*\}`)

// checkShown refuses keys where they would be kept, and shown, as they are. No error of
// its has one.
func (s *Site) checkShown() error {
	values, secrets := s.literals(), s.secretsOf()
	for _, field := range slices.Sorted(maps.Keys(values)) {
		if secrets[field] != nil {
			continue
		}
		for value := range strings.FieldsSeq(values[field]) {
			isKey := func(k platform.Kind) bool { return !k.Key.IsZero() && k.Key.Check(value) == nil }
			if slices.ContainsFunc(Kinds, isKey) {
				return &Mistake{Option: field, Text: "this is a key: write it as admin_key"}
			}
			if u, err := url.Parse(value); err == nil && u.User != nil {
				return &Mistake{Option: field, Text: "an address with credentials would be shown: write it without them"}
			}
		}
	}
	return nil
}
