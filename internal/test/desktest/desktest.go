// Package desktest has a desk with one site for tests. Its platform fails on request.
package desktest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/handlers/desk"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// Now is the time on the desk's clock, and when that of its durable work starts.
var Now = time.Date(2026, time.May, 4, 15, 0, 0, 0, time.UTC)

// Queue is an outbox that has what a test says.
type Queue struct {
	work.Table // whose other methods are not called
	Records    []members.Record
	Total      int
	Tried      int
	Err        error
}

// Pending is Records.
func (q *Queue) Pending(_ context.Context, _ string, most int) (list []work.Task, err error) {
	for _, r := range q.Records[:min(most, len(q.Records))] {
		list = append(list, work.Task{
			Kind: outbox.Kind, Key: r.GUID, Title: cmp.Or(r.Email, r.GUID), IsRemoval: r.Deleted, Since: r.UpdatedAt,
			Attempts: int(r.Attempts), Reason: r.Problem, DueAt: r.NextAttempt,
		})
	}
	return list, q.Err
}

// Count is that of Records, or Total if that is more.
func (q *Queue) Count(context.Context, string) (map[string]int, error) {
	if n := max(q.Total, len(q.Records)); n > 0 {
		return map[string]int{outbox.Kind: n}, q.Err
	}
	return nil, q.Err
}

// Refused is always none.
func (q *Queue) Refused(context.Context, string, int) ([]work.Task, error) { return nil, q.Err }

// DueKinds is always none.
func (*Queue) DueKinds(context.Context) ([]string, error) { return nil, nil }

// Purge does nothing.
func (*Queue) Purge(context.Context) error { return nil }

// MakeDue counts its calls in Tried.
func (q *Queue) MakeDue(context.Context, string) (map[string]int, error) {
	q.Tried++
	return map[string]int{outbox.Kind: len(q.Records)}, q.Err
}

// Harness is a desk with one site, and what its requests and its site depend on.
type Harness struct {
	T testing.TB

	Desk    *desk.Desk
	Site    *desk.Site
	Ghost   *platformtest.Platform
	Outbox  *Queue
	Members *desk.Members
	Themes  *themes.Service
	Curator *curation.Curator
	Events  *events.Service
	Guests  *registration.GuestList
	Mails   *mails.Service
	Work    *work.Queue
	DB      *database.DB
	Log     *observer.ObservedLogs

	// Mail is what mails are sent to, nil for a site that sends none. It is set by SendMails.
	Mail atomic.Pointer[mail.Server]

	// Away is the error of a store that cannot be opened.
	Away error

	// Elapsed is what has passed on the clock of the desk's limits.
	Elapsed time.Duration
}

// New makes a desk, whose active theme has no manifest yet.
func New(t testing.TB) *Harness {
	t.Helper()
	db := dbtest.SQLite(t)
	kept, err := themes.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("themes.NewSQL: %v", err)
	}
	stored, err := memberstore.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	moves, err := curation.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("curation.NewSQL: %v", err)
	}
	eventsStore, err := events.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("events.NewSQL: %v", err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	h := &Harness{
		T: t, DB: db, Log: logs, Outbox: new(Queue),
		Desk:  &desk.Desk{Path: "/ghost", Platforms: "Ghost", Logger: zap.New(core), Now: func() time.Time { return Now }},
		Ghost: platformtest.New(),
	}
	h.Ghost.Now = h.Desk.Now
	h.Ghost.Themes = []platform.InstalledTheme{{Name: "nightly", IsActive: true}, {Name: "source"}}
	h.Desk.Tries, err = ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: desk.TriesLimit, Clock: func() time.Duration { return h.Elapsed }})
	if err != nil {
		t.Fatalf("ratelimit.NewMemory: %v", err)
	}
	log, err := history.New(t.Context(), db)
	if err != nil {
		t.Fatalf("history.New: %v", err)
	}
	h.Members = &desk.Members{
		History: log,
		Keys:    &members.KeyService{Store: stored, Now: h.Desk.Now}, Path: "/integration", MayManage: true,
		Allow: "staff_integrations on", Declared: map[string]desk.DeclaredIntegration{},
		Check: func(form desk.IntegrationForm) (members.Integration, error) {
			if form.Name == "" || strings.ContainsAny(form.Name, "<> ") {
				return members.Integration{}, fmt.Errorf("the name %s cannot be used", form.Name)
			}
			return members.Integration{
				Name: form.Name, Mode: members.Mode(form.Mode), DuplicateEmails: form.DuplicateEmails,
				PlaceholderDomain: form.PlaceholderDomain, SubscribeByDefault: form.Subscribe,
			}, nil
		},
	}
	h.Themes = &themes.Service{Site: "daily", Store: kept, Repositories: map[string]themes.Source{}, Now: h.Desk.Now}
	started := time.Now()
	queue, err := work.New(t.Context(), db, zap.NewNop(), func() time.Time { return Now.Add(time.Since(started)) })
	if err != nil {
		t.Fatalf("work.New: %v", err)
	}
	h.Work = queue
	queue.Handle(work.Kind{Name: outbox.Kind, Table: h.Outbox, IsPersonal: true, Platform: func(string) any { return nil }})
	h.Curator = curation.New(moves, queue, func(string) platform.PostHost { return h.Ghost }, zap.NewNop())
	registrations := registration.New(db, eventsStore, events.NewFeed(eventsStore), queue, func(string) platform.MemberLabeler { return nil },
		func(string) platform.MemberFinder { return nil }, func(context.Context, string, string) error { return nil }, zap.NewNop())
	h.Guests = registrations.Guests
	h.Mails = mails.New(mails.Config{
		DB: db, Events: eventsStore, Queue: queue, Guests: registrations.Guests, Logger: zap.NewNop(), Now: db.Now,
		Server: func(string) *mail.Server { return h.Mail.Load() },
		Publication: func(ctx context.Context, site string) (events.ForMails, bool) {
			return h.Events.Posts.ForMails(ctx, site)
		},
		LinkKey: func(string) []byte { return []byte("key") },
		Sent:    func(string, string, string) {},
	})
	registrations.Tell(h.Mails)
	h.Events = events.New(eventsStore, queue, func(string) platform.EventHost { return h.Ghost }, zap.NewNop(), registrations)
	h.Events.Posts.UsePages(events.Pages{List: "/ghost/lychgate/events"})
	running, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { h.Events.Posts.Run(running) })
	done.Go(func() { queue.Run(running) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	h.Site = &desk.Site{
		CurationSite: &desk.CurationSite{
			Site: &api.Site{
				Name: "daily", Hosts: []string{"news.example.com", "readers.example.com"}, Platform: h.Ghost, Staff: api.NewStaff("daily", "Ghost", h.Ghost, api.NewAuthLimiter(platformtest.StaffLimiter(t))),
				Kind:   platform.Kind{Title: "Ghost", ThemesAPI: "/api/admin/themes/", ThemeSettings: "/#/settings/design/change-theme", Pictures: "/content/images/", SmallPictures: "/content/images/size/w600/", ImagesAPI: "/api/admin/images/upload/"},
				Themes: func() (*themes.Service, error) { return h.Themes, h.Away },
			},
			Posts: h.Ghost, Curator: func() (*curation.Curator, error) { return h.Curator, h.Away },
			OfEvents: func(ctx context.Context, ids []string) ([]string, error) { return h.Events.OfPosts(ctx, "daily", ids) },
		},
		Members: func() (*desk.Members, error) { return h.Members, h.Away },
		Pending: func() (*work.Queue, error) { return h.Work, h.Away },
	}
	h.Site.Events = &api.EventsSite{
		Site: h.Site.Site, Host: h.Ghost, Members: h.Ghost,
		Events: func() (*events.Service, error) { return h.Events, h.Away }, Guests: func() (*registration.GuestList, error) { return h.Guests, h.Away },
		Mails: func() (*mails.Service, error) { return h.Mails, h.Away },
	}
	return h
}

// SendMails has the site send mails to a server, which it returns.
func (h *Harness) SendMails() *smtptest.Server {
	h.T.Helper()
	smtp := smtptest.Start(h.T, smtptest.Options{})
	server, err := mail.New(mail.Config{URL: "smtp://" + smtp.Address, From: "The Daily <events@example.com>", Roots: smtp.Roots})
	if err != nil {
		h.T.Fatalf("mail.New: %v", err)
	}
	h.Mail.Store(server)
	h.Site.Events.SendsMail = true
	return smtp
}

// ErrGone is the error of what does not answer.
var ErrGone = errors.New("connection refused")

// CloseStore has the store go away while it is in use.
func (h *Harness) CloseStore() {
	h.T.Helper()
	if err := h.DB.Close(); err != nil {
		h.T.Fatalf("h.DB.Close: %v", err)
	}
}

// Manifest has a theme's manifest uploaded, as YAML or what encodes as JSON, which is YAML.
func (h *Harness) Manifest(theme string, of any) {
	h.T.Helper()
	text, isText := of.(string)
	if !isText {
		encoded, err := json.Marshal(of)
		if err != nil {
			h.T.Fatalf("json.Marshal: %v", err)
		}
		text = string(encoded)
	}
	if _, err := h.Themes.Take(h.T.Context(), theme, Source(text, nil)); err != nil {
		h.T.Fatalf("h.Themes.Take: %v", err)
	}
}

// Source is a repository that has a manifest, or an error.
func Source(text string, err error) themes.Source {
	return func(context.Context) ([]byte, error) { return []byte(text), err }
}

// Declare has the active theme declare sections, without a finding.
func (h *Harness) Declare(sections ...manifest.Section) {
	h.T.Helper()
	h.Manifest("nightly", manifest.Manifest{Version: 1, Curation: &manifest.Curation{Sections: sections}})
	kept, err := h.Themes.Find(h.T.Context(), "nightly")
	if err != nil || len(kept.Findings) > 0 {
		h.T.Fatalf("Find = %v, %v, want no findings, no error", kept.Findings, err)
	}
}

// Top is a section with two slots.
var Top = manifest.Section{
	Key: "top", Name: "Top stories", Description: "What readers see first.",
	Picker: manifest.Picker{DefaultView: manifest.RecentView, RecentLimit: 5},
	Slots:  []manifest.Slot{{Key: "lead", Label: "Lead story", Tag: "#lead"}, {Key: "second", Label: "Second story", Tag: "#second"}},
}

// Publish adds a published post that carries tags, as the newest.
func (h *Harness) Publish(id, title string, tags ...string) {
	h.Ghost.Mu.Lock()
	defer h.Ghost.Mu.Unlock()
	h.Ghost.Posts = append([]platform.Post{{
		ID: id, Title: title, Status: "published", PublishedAt: Now.Add(-time.Hour), Authors: []string{"Jane"}, Edit: "/#/editor/post/" + id,
	}}, h.Ghost.Posts...)
	h.Ghost.Tags[id] = tags
}
