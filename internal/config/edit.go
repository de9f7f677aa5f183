package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// This file changes the sites in the store, for the command and the admin API.

// NamedSite is a site with its name.
type NamedSite struct {
	// Name is the site's: up to 63 letters, digits, hyphens and underscores. Required.
	Name string `json:"name,omitempty"`

	// Hosts are the host names at which the site is live. Required.
	Hosts []string `json:"hosts,omitempty"`

	// Platform is the publishing platform that the site's members are synced with.
	// Required.
	Platform *Platform `json:"platform,omitempty"`

	// Themes are those whose manifests can be refreshed, by their names in Ghost.
	Themes map[string]*Theme `json:"themes,omitempty"`

	// StaffIntegrations lets the site's owners and administrators add, rotate and
	// revoke integrations on the desk. Default: false.
	StaffIntegrations bool `json:"staff_integrations,omitempty"`

	// Registration lets readers register for the site's events, those whose access says who
	// may. Default: true.
	Registration *bool `json:"registration,omitempty"`

	// Mail is how the site's mails are sent, if that is another way than that of all sites. Default: as those of all sites.
	Mail *Mail `json:"mail,omitempty"`

	// Labels are words of the operator's, such as the tenant whose site it is: up to 63
	// lower-case letters, digits and hyphens each, at most 20. Default: none.
	Labels []string `json:"labels,omitempty"`
}

// UnmarshalJSON names the field in its errors.
func (n *NamedSite) UnmarshalJSON(data []byte) error {
	if !IsObject(data) {
		return errors.New("write an object, such as " + ExampleNamedSite)
	}
	if err := countThemes(data); err != nil {
		return err
	}
	type plain NamedSite
	return ReadJSON(data, (*plain)(n))
}

// IsObject reports whether JSON, if it is that, is an object.
func IsObject(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

func (n *NamedSite) site() *Site {
	return &Site{Hosts: n.Hosts, Platform: n.Platform, Themes: n.Themes, StaffIntegrations: n.StaffIntegrations, Registration: n.Registration, Mail: n.Mail}
}

// ShownSite is a site in the store, without its secrets.
type ShownSite struct {
	NamedSite

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	// Locked is why its keys cannot be opened. Then its members API answers 500.
	Locked string `json:"locked,omitempty"`

	// Problem is why it is not served at all.
	Problem string `json:"problem,omitempty"`
}

// ShowSite leaves out what people may not see of a site in the store, such as its secrets.
func ShowSite(kept sites.Site) ShownSite {
	shown := ShownSite{NamedSite: NamedSite{Name: kept.Name, Hosts: kept.Hosts, Labels: kept.Labels}, CreatedAt: kept.CreatedAt, UpdatedAt: kept.UpdatedAt}
	if kept.Locked != nil {
		shown.Locked = kept.Locked.Error()
	}
	site, err := FromStore(kept)
	if err != nil {
		shown.Problem = err.Error()
		return shown
	}
	for _, secret := range site.secretsOf() {
		*secret = ""
	}
	shown.Platform, shown.Themes, shown.StaffIntegrations, shown.Registration, shown.Mail = site.Platform, site.Themes, site.StaffIntegrations, site.Registration, site.Mail
	return shown
}

// ExampleNamedSite is a site as JSON has it.
const ExampleNamedSite = `{"name": "daily", "hosts": ["news.example.com"], "platform": {"kind": "none"}}`

// WriteSecret is what to do without a secret.
const WriteSecret = "write secret {env.LYCHGATE_SECRET} into the lychgate block, with a value as openssl rand -hex 32 makes it"

// InvalidSiteError is why a site cannot be kept, and what to write instead.
type InvalidSiteError struct {
	Name    string
	Problem error
}

func (e *InvalidSiteError) Error() string { return fmt.Sprintf("site %s: %s", e.Name, e.Problem) }

func (e *InvalidSiteError) Unwrap() error { return e.Problem }

// ConfiguredError means that another site of the configuration has a host of a site.
type ConfiguredError struct{ Name, Problem string }

func (e *ConfiguredError) Error() string { return fmt.Sprintf("site %s: %s", e.Name, e.Problem) }

// Editor changes sites in the store, beside a configuration.
type Editor struct {
	*Config
	Placeholders Placeholders
	Lines        Lines
	Store        *sites.SQL
	Scope        Scope // of who changes them
	Reach        Reach // of the same, where they have a scope

	// CountPending counts the members of a site whose writes are pending.
	CountPending func(ctx context.Context, site string) (int, error)

	// IsKept reports whether members, keys, events or whatever else is kept under a site's name. Without a
	// scope it may be nil.
	IsKept func(ctx context.Context, site string) (bool, error)
}

// Find finds a site that is in the scope. Errors: sites.ErrNotFound.
func (e *Editor) Find(ctx context.Context, name string) (sites.Site, error) {
	kept, err := e.Store.Find(ctx, name)
	if err == nil && (!e.Scope.Has(kept.Labels) || e.Hides(name)) {
		return sites.Site{}, fmt.Errorf("finding site %s: %w", name, sites.ErrNotFound)
	}
	return kept, err
}

// Hides reports whether the name is that of a site of the configuration, which no scope has: with the
// name come its members and keys, also for a site in the store that has it too.
func (e *Editor) Hides(name string) bool { return len(e.Scope) > 0 && e.Sites[name] != nil }

// checkName refuses the name of a new site that is that of the configuration's, or with which members,
// keys or events of an earlier site come, which may have been somebody else's.
func (e *Editor) checkName(ctx context.Context, name string) error {
	if isName := CheckSiteName(name) == nil; len(e.Scope) == 0 || !isName { // which Prepare says
		return nil
	}
	isKept, err := e.IsKept(ctx, name)
	if err == nil && (isKept || e.Hides(name)) {
		err = &sites.ExistsError{Name: name}
	}
	return err
}

// Add adds sites, with the labels of the scope if they have none. Errors: those of Prepare and of
// [sites.SQL].
func (e *Editor) Add(ctx context.Context, list ...NamedSite) ([]sites.Site, error) {
	for i := range list {
		if err := e.checkName(ctx, list[i].Name); err != nil {
			return nil, e.hideOwner(ctx, err)
		}
		labels, err := e.Scope.forNew(list[i].Labels)
		if err != nil {
			return nil, &InvalidSiteError{list[i].Name, JSONText(err)}
		}
		list[i].Labels = labels
	}
	prepared, err := e.Prepare(list...)
	for i := 0; err == nil && i < len(list); i++ {
		err = e.checkReach(sites.Site{}, new(Site), prepared[i], list[i].site())
	}
	if err == nil {
		err = e.Store.Add(ctx, prepared...)
	}
	return prepared, e.hideOwner(ctx, err)
}

// hideOwner leaves out whose a host is, if that site may not be seen, and to change a site that may not.
func (e *Editor) hideOwner(ctx context.Context, err error) error {
	if exists, ok := errors.AsType[*sites.ExistsError](err); ok && len(e.Scope) > 0 {
		if _, err := e.Find(ctx, exists.Name); errors.Is(err, sites.ErrNotFound) {
			return &ConfiguredError{exists.Name, "the name is taken: choose another"}
		}
	}
	if taken, ok := errors.AsType[*sites.HostTakenError](err); ok && len(e.Scope) > 0 {
		return &ConfiguredError{taken.Name, "host " + taken.Host + " already belongs to another site"}
	}
	return err
}

// Prepare checks sites, and returns what is to be kept of them. Errors:
// *InvalidSiteError, *ConfiguredError.
func (e *Editor) Prepare(list ...NamedSite) ([]sites.Site, error) {
	hosts, err := e.configuredHosts()
	if err != nil {
		return nil, err
	}
	all, seen := make([]sites.Site, 0, len(list)), make(map[string]bool)
	for _, named := range list {
		if seen[named.Name] {
			return nil, &InvalidSiteError{named.Name, errors.New("it is in the list twice: write it once")}
		}
		seen[named.Name] = true
		kept, err := named.site().ForStore(named.Name)
		if err != nil {
			return nil, &InvalidSiteError{named.Name, err}
		}
		if kept.Labels, err = checkedLabels(named.Labels); err != nil {
			return nil, &InvalidSiteError{named.Name, JSONText(err)}
		}
		for _, host := range kept.Hosts {
			if owner := hosts[host]; owner != "" && owner != kept.Name { // which takes the place of that one when it goes
				if len(e.Scope) > 0 { // which may not see that one
					return nil, &ConfiguredError{kept.Name, "host " + host + " already belongs to another site"}
				}
				return nil, &ConfiguredError{kept.Name, fmt.Sprintf("host %s belongs to site %s of the configuration", host, owner)}
			}
		}
		all = append(all, kept)
	}
	return all, nil
}

func (e *Editor) configuredHosts() (map[string]string, error) {
	all, err := e.ResolveSites(e.Placeholders)
	if err != nil {
		return nil, e.Lines.Explain(err)
	}
	owners := make(map[string]string)
	for name, hosts := range all {
		for _, host := range hosts {
			owners[host] = name
		}
	}
	return owners, nil
}

// Patch changes sites in the store by JSON merge patches (RFC 7396), all of them in
// one step, so that hosts can move from one to another. Secrets stay if the patch does
// not have them, as long as they go to the same servers. A platform is exchanged for another only if no writes are pending, or
// may be lost. Errors: *PendingError, those of Prepare and of [sites.SQL].
func (e *Editor) Patch(ctx context.Context, patches map[string]json.RawMessage, mayLose bool) error {
	var all []sites.Site
	size := 0
	for _, name := range slices.Sorted(maps.Keys(patches)) {
		if CheckSiteName(name) != nil { // PostgreSQL cannot be asked for some of them
			return fmt.Errorf("finding site %.80q: %w", name, sites.ErrNotFound)
		}
		kept, err := e.Find(ctx, name)
		if err != nil {
			return err
		}
		site, err := FromStore(kept)
		if err != nil {
			return &InvalidSiteError{name, err}
		}
		if size += len(kept.Settings); size > maxPatched && len(all) > 0 {
			return &InvalidSiteError{name, errTooMuch}
		}
		named, err := patched(kept, site, patches[name])
		if err != nil {
			return &InvalidSiteError{name, err}
		}
		if err := e.Scope.checkChange(kept.Labels, named.Labels); err != nil {
			return &InvalidSiteError{name, JSONText(err)}
		}
		prepared, err := e.Prepare(named)
		if err != nil {
			return err
		}
		if err := e.checkReach(kept, site, prepared[0], named.site()); err != nil {
			return err
		}
		if err := checkReceivers(site, named.site(), patches[name]); err != nil {
			return &InvalidSiteError{name, err}
		}
		if named.Platform.Kind != site.Platform.Kind || named.Platform.URL != site.Platform.URL {
			if err := e.checkPending(ctx, name, mayLose); err != nil {
				return err
			}
		}
		prepared[0].Revision = kept.Revision
		all = append(all, prepared[0])
	}
	return e.hideOwner(ctx, e.Store.Replace(ctx, all...))
}

// maxPatched bounds what the sites that are changed at once have of settings, in bytes: all of them are in memory meanwhile.
const maxPatched = 4 << 20

var errTooMuch = fmt.Errorf("it and those before it have more than %d MiB of settings together: change fewer sites at once", maxPatched>>20)

// checkPending refuses to drop writes that are pending, unless they may be lost. Errors:
// *PendingError.
func (e *Editor) checkPending(ctx context.Context, name string, mayLose bool) error {
	if mayLose {
		return nil
	}
	pending, err := e.CountPending(ctx, name)
	if err == nil && pending > 0 {
		err = &PendingError{name, pending}
	}
	return err
}

func patched(kept sites.Site, site *Site, patch json.RawMessage) (NamedSite, error) {
	if err := checkPatch(patch); err != nil {
		return NamedSite{}, err
	}
	text, err := json.Marshal(NamedSite{
		Name: kept.Name, Hosts: site.Hosts, Platform: site.Platform, Themes: site.Themes, StaffIntegrations: site.StaffIntegrations,
		Registration: site.Registration, Mail: site.Mail, Labels: kept.Labels,
	})
	if err != nil {
		return NamedSite{}, err
	}
	var target, change any
	if err := json.Unmarshal(text, &target); err != nil {
		return NamedSite{}, err
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return NamedSite{}, err
	}
	if text, err = json.Marshal(mergePatch(target, change)); err != nil {
		return NamedSite{}, err
	}
	var named NamedSite
	if err := json.Unmarshal(text, &named); err != nil {
		return NamedSite{}, err
	}
	if named.Name != kept.Name {
		return NamedSite{}, fmt.Errorf("name: a site keeps its name: leave it out, or write %q", kept.Name)
	}
	if kind, ok := named.Platform.Of(); ok && kept.Locked != nil && !kind.Key.IsZero() && named.Platform.AdminKey == "" {
		return NamedSite{}, fmt.Errorf("platform.admin_key: write it anew, and the tokens of its themes: those in the store cannot be opened: %w", kept.Locked)
	}
	if kept.Locked != nil && named.Mail != nil && named.Mail.URL == "" {
		return NamedSite{}, fmt.Errorf("mail.url: write it anew: that in the store cannot be opened: %w", kept.Locked)
	}
	return named, nil
}

// PendingError means that a site has writes that its platform does not have yet.
type PendingError struct {
	Name    string
	Members int
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("site %s has writes of %s that its platform does not have yet", e.Name, english.Plural(e.Members, "member", ""))
}

// Remove removes a site from the store, unless writes of it are pending and may not
// be lost. What is kept of it is deleted later. Errors: *PendingError, and those of
// [sites.SQL].
func (e *Editor) Remove(ctx context.Context, name string, mayLose bool) error {
	if _, err := e.Find(ctx, name); err != nil {
		return err
	}
	goesOn := e.Sites[name] != nil // with what is kept of it
	if err := e.checkPending(ctx, name, mayLose || goesOn); err != nil {
		return err
	}
	return e.Store.Remove(ctx, name, goesOn)
}

// checkPatch checks that a change has the fields of a site alone, and values of their kinds, before it is read as any
// JSON: that may take 50 times its size.
func checkPatch(patch json.RawMessage) error {
	if err := json.Unmarshal(patch, new(json.RawMessage)); err != nil {
		return fmt.Errorf("the change is not JSON: %w", err)
	}
	if !IsObject(patch) {
		return errors.New(`write an object with what changes, such as {"hosts": ["news.example.com"]}`)
	}
	if err := countThemes(patch); err != nil {
		return err
	}
	return checkJSON("", bytes.TrimSpace(patch), reflect.TypeFor[NamedSite]())
}

// countThemes refuses a site with too many themes before each of them is checked.
func countThemes(text json.RawMessage) error {
	var counted struct {
		Themes map[string]json.RawMessage `json:"themes"`
	}
	if json.Unmarshal(text, &counted) == nil && len(counted.Themes) > maxThemes { // what else is wrong is said later
		return JSONText(errTooManyThemes)
	}
	return nil
}

// mergePatch applies a merge patch (RFC 7396, section 2).
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := make(map[string]any)
	if fields, ok := target.(map[string]any); ok {
		maps.Copy(merged, fields)
	}
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
		} else {
			merged[name] = mergePatch(merged[name], change)
		}
	}
	return merged
}
