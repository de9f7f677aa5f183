package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// integrationsPage is what the template of the page has.
type integrationsPage struct {
	Notice       *notice
	Integrations []listedIntegration
	More         int // beyond these
	MayManage    bool
	Allow        string

	// Confirm is what is asked before it is done: rotate or revoke, and Name of which.
	Confirm, Name string

	New  *newKey
	Form IntegrationForm

	all map[string]listedIntegration // by name, also those that are not listed
}

// newKey is a key, which is shown once.
type newKey struct {
	Name, URL, Key string
	IsRotated      bool
}

// listedIntegration is an integration in the list.
type listedIntegration struct {
	members.Integration
	IsDeclared bool // in the configuration
	HasKey     bool
	UseUnknown bool // its key is in the configuration, of which no use is kept
	History    []shownDeed
}

const (
	// maxListed bounds the list, so that a page stays small.
	maxListed = 50

	// maxDeeds is how many changes of each integration are shown.
	maxDeeds = 5

	// maxKept bounds the integrations of a site that staff may add, revoked ones
	// included: their names stay.
	maxKept = 100
)

func showIntegrations(ctx context.Context, v *view) (any, error) {
	shown, err := v.integrationsPage(ctx)
	if err != nil {
		return nil, err
	}
	query := v.request.URL.Query()
	if name := query.Get("revoked"); name != "" {
		shown.Notice = &notice{Of: clip.Text(name, maxField), Text: "is revoked. Its key is refused from now on."}
	}
	for _, what := range []string{"rotate", "revoke"} {
		if name := query.Get(what); name != "" && shown.mayChange(name) {
			shown.Confirm, shown.Name = what, name
		}
	}
	return shown, nil
}

func (v *view) integrationsPage(ctx context.Context) (*integrationsPage, error) {
	stored, err := v.members.Keys.Store.ListIntegrations(ctx, v.site.Name)
	if err != nil {
		return nil, away(err)
	}
	entries, err := v.members.History.ListKind(ctx, v.site.Name, ofIntegration, maxDeeds)
	if err != nil {
		return nil, away(err)
	}
	byName := make(map[string]listedIntegration)
	for _, i := range stored {
		byName[i.Name] = listedIntegration{Integration: i, HasKey: true}
	}
	for name, declared := range v.members.Declared { // which decides
		of := byName[name]
		created, revoked, used := of.CreatedAt, of.RevokedAt, of.LastUsedAt
		of.Integration, of.IsDeclared, of.HasKey = declared.Integration, true, of.HasKey || declared.HasKey
		if !declared.HasKey {
			of.CreatedAt, of.RevokedAt, of.LastUsedAt = created, revoked, used
		}
		of.UseUnknown = declared.HasKey
		byName[name] = of
	}
	names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int { // revoked ones last
		return cmp.Or(byName[a].RevokedAt.Compare(byName[b].RevokedAt), strings.Compare(a, b))
	})
	shown := &integrationsPage{
		MayManage: v.members.MayManage, Allow: v.members.Allow, More: max(0, len(names)-maxListed), all: byName,
		Form: IntegrationForm{Mode: string(members.EmailMode), Subscribe: true},
	}
	for _, name := range names[:min(len(names), maxListed)] {
		of := byName[name]
		of.History = shownDeedsOf(v.site.Kind.Title, entries[name])
		shown.Integrations = append(shown.Integrations, of)
	}
	return shown, nil
}

// mayChange reports whether the integration of a name can be changed on the page.
func (p *integrationsPage) mayChange(name string) bool {
	i, ok := p.all[name]
	return p.MayManage && ok && !i.IsDeclared
}

var errSwitchedOff = refusal(http.StatusForbidden, "The operator of this service has not switched this on for the site.")

// changeIntegrations adds, rotates and revokes.
func changeIntegrations(ctx context.Context, v *view) (any, error) {
	if !v.members.MayManage {
		return nil, errSwitchedOff
	}
	form := v.request.PostForm
	switch do, name := form.Get("do"), form.Get("name"); do {
	case "add":
		return v.addIntegration(ctx, IntegrationForm{
			Name: strings.TrimSpace(name), Mode: form.Get("mode"), PlaceholderDomain: strings.TrimSpace(form.Get("placeholder_domain")),
			DuplicateEmails: form.Get("allow_duplicate_emails") == "on", Subscribe: form.Get("subscribe_by_default") == "on",
		})
	case "rotate", "revoke":
		shown, err := v.integrationsPage(ctx)
		if err != nil {
			return nil, err
		}
		if !shown.mayChange(name) {
			shown.Notice = &notice{Of: clip.Text(name, maxField), Text: "cannot be changed here: it is gone, or in the configuration.", IsProblem: true}
			return shown, nil
		}
		if do == "rotate" {
			return v.rotateIntegration(ctx, shown, name)
		}
		if err := v.members.Keys.Revoke(ctx, v.site.Name, name); err != nil {
			return nil, away(err)
		}
		v.note(ctx, "an integration was revoked on the desk", "revoked", name)
		return redirection(url.Values{"revoked": {name}}.Encode()), nil
	}
	return nil, errForm
}

// errNoID is a form that lets members share an email though they have nothing else.
var errNoID = errors.New("Members who share an email need an ID of the integration's own: choose that above.") //nolint:staticcheck // a sentence for people

// errTooMany is a form that adds more than a site may have.
var errTooMany = fmt.Errorf("There are %d integrations, revoked ones included. Give one of them another key instead.", maxKept) //nolint:staticcheck // a sentence for people

func (v *view) addIntegration(ctx context.Context, form IntegrationForm) (any, error) {
	added, err := v.members.Check(form)
	if form.DuplicateEmails && form.Mode != string(members.CustomIDMode) {
		err = errNoID
	}
	if err == nil {
		before, listErr := v.integrationsPage(ctx)
		if listErr != nil {
			return nil, listErr
		}
		if len(before.all) >= maxKept {
			err = errTooMany
		}
	}
	key := ""
	if err == nil {
		if _, taken := v.members.Declared[added.Name]; taken {
			err = members.ErrIntegrationTaken
		} else {
			added.Site = v.site.Name
			key, added, err = v.members.Keys.Add(ctx, added)
			if err != nil && !errors.Is(err, members.ErrIntegrationTaken) {
				return nil, away(err)
			}
		}
	}
	if err == nil {
		v.note(ctx, "an integration was added on the desk", "added", added.Name)
	}
	shown, listErr := v.integrationsPage(ctx)
	if listErr != nil {
		return nil, listErr
	}
	if err != nil {
		shown.Form, shown.Notice = form, &notice{Text: clip.Text(err.Error(), maxMessage), IsProblem: true}
		if errors.Is(err, members.ErrIntegrationTaken) {
			shown.Notice = &notice{Of: clip.Text(form.Name, maxField), Text: "is there already: choose another name, or give it another key.", IsProblem: true}
		}
		return shown, nil
	}
	shown.New = &newKey{Name: added.Name, URL: v.origin() + v.members.Path, Key: key}
	return shown, nil
}

func (v *view) rotateIntegration(ctx context.Context, shown *integrationsPage, name string) (any, error) {
	key, err := v.members.Keys.Rotate(ctx, v.site.Name, name)
	if err != nil {
		return nil, away(err)
	}
	v.note(ctx, "the key of an integration was rotated on the desk", "rotated", name)
	for i := range shown.Integrations {
		if shown.Integrations[i].Name == name {
			shown.Integrations[i].RevokedAt, shown.Integrations[i].LastUsedAt = time.Time{}, time.Time{}
		}
	}
	shown.New = &newKey{Name: name, URL: v.origin() + v.members.Path, Key: key, IsRotated: true}
	return shown, nil
}

// origin is the site's as the browser has it: a proxy ahead of Caddy may end TLS.
func (v *view) origin() string { return v.visitor.Origin }

// ofIntegration is the kind of the entries of integrations in the history.
const ofIntegration = "integration"

// note keeps and logs who changed an integration. The change is made, so it does not fail for want of
// the entry.
func (v *view) note(ctx context.Context, message, did, integration string) {
	logged := []zap.Field{zap.String("site", v.site.Name), zap.String("integration", integration)}
	v.desk.Logger.Info(message, append(logged, zap.Strings("roles", v.member.Roles))...)
	by := history.Entry{Editor: history.Editor{ID: v.member.ID, Name: v.member.Name}, Did: did}
	if err := v.members.History.AddAlone(ctx, history.Thing{Site: v.site.Name, Kind: ofIntegration, Key: integration}, by); err != nil {
		v.desk.Logger.Warn("cannot add to history of integration", append(logged, zap.Error(err))...)
	}
}
