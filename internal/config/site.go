package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/themes/git"
)

// Site is one publication.
type Site struct {
	// Hosts are the host names at which the site is live, without port. A host
	// belongs to one site only. Internationalized names may be written either
	// way. Placeholders such as {env.HOST} are replaced. Required.
	Hosts []string `json:"hosts,omitempty"`

	// Platform is the publishing platform that the site's members are synced
	// with. Required where members_api serves the site.
	Platform *Platform `json:"platform,omitempty"`

	// Integrations are those who may use the members API, by name.
	Integrations map[string]*Integration `json:"integrations,omitempty"`

	// Themes are those whose manifests can be refreshed, by their names in
	// Ghost.
	Themes map[string]*Theme `json:"themes,omitempty"`

	// StaffIntegrations lets the site's owners and administrators add, rotate and
	// revoke integrations on the desk. Default: false.
	StaffIntegrations bool `json:"staff_integrations,omitempty"`

	// Registration lets readers register for the site's events, those whose access says who
	// may. Default: true.
	Registration *bool `json:"registration,omitempty"`

	// Mail is how the site's mails are sent, if that is another way than that of all sites. Default: as those of all sites.
	Mail *Mail `json:"mail,omitempty"`
}

// TakesRegistrations reports whether readers may register for the site's events.
func (s *Site) TakesRegistrations() bool { return s.Registration == nil || *s.Registration }

// check finds mistakes in what is written of a site, whose name is not among them.
func (s *Site) check(p Placeholders, owners map[string]string, name string) error {
	if _, err := s.ResolveHosts(p, owners, name); err != nil {
		return err
	}
	if err := s.checkThemes(p); err != nil {
		return err
	}
	if s.Platform != nil {
		if _, err := s.Platform.resolve(p); err != nil {
			return err
		}
		if _, err := s.WebhookAddress(p, s.writtenHosts()); err != nil {
			return err
		}
	}
	if _, err := s.Mail.Resolve(p); err != nil {
		return err
	}
	_, err := s.ResolveIntegrations(p)
	return err
}

// writtenHosts are as they appear in requests. It is nil if one has a placeholder.
func (s *Site) writtenHosts() (hosts []string) {
	for _, host := range s.Hosts {
		parsed, err := parseHost(host)
		if err != nil || strings.Contains(host, "{") {
			return nil
		}
		hosts = append(hosts, parsed)
	}
	return hosts
}

// ResolveHosts are as they appear in requests. They are added to owners, which has the
// site of each; a host that another site has is an error.
func (s *Site) ResolveHosts(p Placeholders, owners map[string]string, name string) (hosts []string, err error) {
	for _, host := range s.Hosts {
		err := p.Use("hosts", host, func(host string) error {
			host, err := parseHost(host)
			if err != nil {
				return err
			}
			if other, taken := owners[host]; taken && other != name {
				return &Mistake{Text: "host " + host + " already belongs to site " + other, Field: "hosts"}
			}
			owners[host] = name
			hosts = append(hosts, host)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(s.Hosts) == 0 {
		return nil, errNoHosts
	}
	return hosts, nil
}

// WebhookAddress is where the platform is to send its webhook events, without a path: ""
// for nowhere. The site has these hosts, or unknown ones if there are none.
func (s *Site) WebhookAddress(ph Placeholders, hosts []string) (address string, err error) {
	kind, _ := s.Platform.Of()
	if !kind.SendsEvents() || s.Platform.Webhooks == "off" {
		return "", nil
	}
	if s.Platform.Webhooks == "" {
		if len(hosts) == 0 || hosts[0] == "localhost" { // which the platform looks up in DNS
			return "", nil
		}
		return "https://" + hosts[0], nil
	}
	err = ph.Use("webhooks", s.Platform.Webhooks, func(value string) error {
		if value == "off" {
			return nil
		}
		address = value
		return checkWebhooks(kind, value, hosts)
	})
	return address, s.Platform.in(err)
}

// ResolveIntegrations checks the integrations of a site.
func (s *Site) ResolveIntegrations(p Placeholders) (Integrations, error) {
	all := Integrations{make(map[members.KeyHash]members.Integration), make(map[string]members.Integration)}
	written := make(map[string]string) // key → the integration that has it
	for _, name := range slices.Sorted(maps.Keys(s.Integrations)) {
		hash, integration, err := s.Integrations[name].resolve(p, name)
		if err != nil {
			return Integrations{}, err
		}
		if hash == nil {
			all.ByName[name] = integration
		} else if other, taken := all.ByKey[*hash]; taken {
			return Integrations{}, inIntegration(name, errSameKey(other.Name))
		} else {
			all.ByKey[*hash] = integration
		}
		if of := s.Integrations[name]; p.written && of != nil && of.Key != "" {
			if other := written[of.Key]; other != "" {
				return Integrations{}, inIntegration(name, errSameKey(other))
			}
			written[of.Key] = name
		}
	}
	return all, nil
}

// checkThemes checks a site's themes as far as can be without asking anybody.
func (s *Site) checkThemes(p Placeholders) error {
	for _, name := range slices.Sorted(maps.Keys(s.Themes)) {
		if err := CheckThemeName(name); err != nil {
			return err
		}
		if kind, ok := s.Platform.Of(); ok && !kind.HasThemes() {
			return inTheme(name, s.Platform.errNoThemes())
		}
	}
	_, err := s.Repositories(p)
	return err
}

// Repositories are where the site's themes are refreshed from, by the names of the themes.
// Nothing is sent there yet.
func (s *Site) Repositories(p Placeholders) (map[string]*git.Repository, error) {
	all := make(map[string]*git.Repository)
	for _, name := range slices.Sorted(maps.Keys(s.Themes)) {
		theme := s.Themes[name]
		if theme == nil || theme.Repository == nil {
			return nil, inTheme(name, errNoRepository)
		}
		repository, err := theme.Repository.resolve(p)
		if err != nil {
			return nil, inTheme(name, In("repository", "repository", err))
		}
		all[name] = repository
	}
	return all, nil
}
