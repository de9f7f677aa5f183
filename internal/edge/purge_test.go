package edge_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// The registrants of a site in the store, and those who wait, are gone with the site, whichever directives the edge
// has, and the registrations of other sites stay.
func TestPurgedRegistrations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lychgate.db")
	e, err := edge.New(edge.Options{
		Config:    &config.Config{Store: &config.Store{Kind: "sqlite", Source: file}},
		StoreFile: file, Logger: zap.NewNop(), Registry: prometheus.NewPedanticRegistry(),
	})
	if err == nil {
		err = e.Start()
	}
	if err != nil {
		t.Fatalf("starting the edge: %v", err)
	}
	defer func() {
		e.Stop()
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	editor, err := e.Stored().Editor()
	if err != nil {
		t.Fatalf("Editor: %v", err)
	}
	add := func(sites ...string) {
		t.Helper()
		for _, name := range sites {
			kept, err := editor.Prepare(config.NamedSite{Name: name, Hosts: []string{name + ".example"}, Platform: &config.Platform{Kind: "none"}})
			if err == nil {
				err = editor.Store.Add(t.Context(), kept...)
			}
			if err != nil {
				t.Fatalf("adding %s: %v", name, err)
			}
		}
	}
	add("daily", "weekly")

	db, err := database.Open(t.Context(), database.SQLite, file)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	for _, site := range []string{"daily", "weekly"} {
		register(t, db, site)
		dbtest.Exec(t, db, `INSERT INTO registrations_waiting (site, event, member, email, name, language, since) VALUES ($1, 'x', 'y', 'joe@example.com', '', '', 1)`, site)
	}
	got := func() []string {
		t.Helper()
		list, err := database.List(t.Context(), db.Read, database.Text, `SELECT site || ' ' || email FROM registrations
			UNION ALL SELECT site || ' ' || email FROM registrations_waiting ORDER BY 1`)
		if err != nil {
			t.Fatalf("database.List: %v", err)
		}
		return list
	}
	if diff := cmp.Diff([]string{"daily jane@example.com", "daily joe@example.com", "weekly jane@example.com", "weekly joe@example.com"}, got()); diff != "" {
		t.Fatalf("registrations before (-want +got):\n%s", diff)
	}
	if err := editor.Remove(t.Context(), "daily", false); err != nil {
		t.Fatalf("Remove: %v", err)
	}
	if err := e.Stored().PurgeNow(t.Context()); err != nil {
		t.Fatalf("PurgeNow: %v", err)
	}
	if diff := cmp.Diff([]string{"weekly jane@example.com", "weekly joe@example.com"}, got()); diff != "" {
		t.Errorf("registrations after the purge (-want +got):\n%s", diff)
	}
}

// register has a member registered for an event of a site.
func register(t *testing.T, db *database.DB, site string) {
	t.Helper()
	values := map[string]any{"name": "Party", "event_date": time.Now().AddDate(1, 0, 0).Format(time.DateOnly), "access": "free"}
	err := eventstest.Publish(t.Context(), db, events.Event{
		Site: site, ID: strings.Repeat("p", 26), Theme: "nightly", Type: "party", Values: values, Post: events.Post{ID: "1", Slug: "party"},
	})
	if err != nil {
		t.Fatalf("eventstest.Publish: %v", err)
	}
	store, err := events.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("events.NewSQL: %v", err)
	}
	queue, err := work.New(t.Context(), db, zap.NewNop(), nil)
	if err != nil {
		t.Fatalf("work.New: %v", err)
	}
	registrations := registration.New(db, store, events.NewFeed(store), queue,
		func(string) platform.MemberLabeler { return nil }, func(string) platform.MemberFinder { return nil }, func(context.Context, string, string) error { return nil }, zap.NewNop())
	reader := registration.Reader{Member: "uuid-1", Email: "jane@example.com", Name: "Jane", Membership: registration.FreeMember}
	if _, err := registrations.Readers.Register(t.Context(), site, "party", reader); err != nil {
		t.Fatalf("Register: %v", err)
	}
}
