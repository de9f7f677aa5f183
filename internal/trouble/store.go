package trouble

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// Store has what is known of all edges.
type Store struct {
	db       *database.DB
	contacts *contacts.SQL
	members  *memberstore.SQL
	themes   *themes.SQL
	sources  []Source
}

// Open migrates the tables that are read.
func Open(ctx context.Context, db *database.DB) (*Store, error) {
	s := &Store{db: db}
	var err error
	if s.contacts, err = contacts.NewSQL(ctx, db); err != nil {
		return nil, err
	}
	if s.members, err = memberstore.NewSQL(ctx, db); err != nil {
		return nil, err
	}
	if s.themes, err = themes.NewSQL(ctx, db); err != nil {
		return nil, err
	}
	if err := work.Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	s.sources = []Source{
		{[]State{KeyRejected, PlatformAway}, s.listContacts},
		{[]State{WritesPending}, s.listPending},
		{[]State{WebhookMissing}, s.listWebhooks},
		{[]State{ManifestFindings}, s.listFindings},
		{[]State{ThemeUnreadable}, s.listUnread},
	}
	return s, nil
}

// List lists sites with a state, or in any for Failing. Of a site it has the reasons with that state. Sites for which
// isServed is false are left out. The sources are of what the store does not know.
func (s *Store) List(ctx context.Context, of State, page database.SitePage, isServed func(site string) bool, more ...Source) ([]Site, error) {
	found, err := list(ctx, slices.Concat(s.sources, more), of, page, isServed)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found))
	for i := range found {
		site := &found[i]
		names[i] = site.Name
		if slices.ContainsFunc(site.Reasons, func(r Reason) bool { return r.State == KeyRejected }) { // which explains the other
			site.Reasons = slices.DeleteFunc(site.Reasons, func(r Reason) bool { return r.State == WebhookMissing })
		}
		slices.SortFunc(site.Reasons, func(a, b Reason) int {
			return cmp.Compare(slices.Index(States, a.State), slices.Index(States, b.State))
		})
	}
	last, err := s.contacts.RespondedAt(ctx, names)
	for i := range found {
		found[i].LastContact = known(last[found[i].Name])
	}
	return found, err
}

// known is nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (s *Store) listContacts(ctx context.Context, of State, page database.SitePage) (list []Entry, err error) {
	failing, err := s.contacts.Failing(ctx, outcomeOf(of), page)
	for _, c := range failing {
		list = append(list, Entry{c.Site, Reason{State: stateOf(c.Outcome), Since: known(c.Since), Problem: c.Problem}})
	}
	return list, err
}

// outcomeOf is "" for all that are trouble.
func outcomeOf(of State) contacts.Outcome {
	switch of {
	case KeyRejected:
		return contacts.Rejected
	case PlatformAway:
		return contacts.Away
	}
	return ""
}

func stateOf(of contacts.Outcome) State {
	if of == contacts.Rejected {
		return KeyRejected
	}
	return PlatformAway
}

func (s *Store) listPending(ctx context.Context, _ State, page database.SitePage) ([]Entry, error) {
	list, err := s.addUp(func(of database.Backlogs, before time.Time) ([]database.Backlog, error) {
		return of.List(ctx, s.db, before, page)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Site, b.Site) })
	return list[:min(len(list), page.Most)], nil
}

// addUp adds up members and other work, which are in two tables.
func (s *Store) addUp(read func(of database.Backlogs, before time.Time) ([]database.Backlog, error)) (list []Entry, err error) {
	at := make(map[string]int)
	for _, of := range []database.Backlogs{memberstore.Backlogs, work.Backlogs} {
		backlogs, err := read(of, s.db.Now().Add(-PendingAfter))
		if err != nil {
			return nil, err
		}
		for _, b := range backlogs {
			i, ok := at[b.Site]
			if !ok {
				at[b.Site] = len(list)
				list = append(list, Entry{b.Site, Reason{State: WritesPending, Since: known(b.Oldest), Pending: b.Pending}})
				continue
			}
			if list[i].Pending += b.Pending; b.Oldest.Before(*list[i].Since) {
				list[i].Since = known(b.Oldest)
			}
		}
	}
	return list, nil
}

func (s *Store) listWebhooks(ctx context.Context, _ State, page database.SitePage) (list []Entry, err error) {
	missing, err := s.members.UnregisteredWebhooks(ctx, page)
	for _, w := range missing {
		list = append(list, Entry{w.Site, Reason{State: WebhookMissing, Since: known(w.SeenAt), Problem: "the platform has not taken the webhooks, so what changes there is seen late"}})
	}
	return list, err
}

func (s *Store) listFindings(ctx context.Context, _ State, page database.SitePage) (list []Entry, err error) {
	failing, err := s.themes.WithFindings(ctx, page)
	for _, f := range failing {
		problem := fmt.Sprintf("the manifest of theme %s has %s", f.Name, english.Plural(f.Findings, "finding", ""))
		if f.Themes > 1 {
			problem = fmt.Sprintf("the manifests of theme %s and %d more have %d findings", f.Name, f.Themes-1, f.Findings)
		}
		list = append(list, Entry{f.Site, Reason{State: ManifestFindings, Since: known(f.Since), Problem: problem}})
	}
	return list, err
}

func (s *Store) listUnread(ctx context.Context, _ State, page database.SitePage) (list []Entry, err error) {
	failing, err := s.themes.Unread(ctx, page)
	for _, f := range failing {
		list = append(list, Entry{f.Site, Reason{State: ThemeUnreadable, Since: known(f.Since), Problem: fmt.Sprintf("theme %s: %s", f.Name, f.Problem)}})
	}
	return list, err
}
