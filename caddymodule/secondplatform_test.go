package caddymodule_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A second platform has to implement [platform.Platform], the eight methods below, and
// to have a [platform.Kind]. That is all that this file has up to the tests.
//
// What it implements beside, it gets: with [platform.EventSource] the option webhooks,
// and changes as soon as they are made there; with [platform.BulkChanger] a comparison
// after changes of which it sends no event; with [platform.Locator] a line in the log if
// its address is wrong; with [platform.ThemeHost] theme_manifest. The shelf has none of
// these.

// shelf is a platform that keeps its members in a map, by ID.
type shelf struct {
	mu      sync.Mutex
	members map[string]platform.Member
	made    int
}

func (s *shelf) Create(_ context.Context, m platform.Member) (platform.Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder(m.Email, "") != "" {
		return platform.Member{}, &platform.Refusal{Reason: "The shelf has this email.", Taken: true}
	}
	s.made++
	m.ID, m.Status, m.CreatedAt, m.UpdatedAt = fmt.Sprintf("shelf-%03d", s.made), "free", time.Now(), time.Now()
	s.members[m.ID] = m
	return m, nil
}

func (s *shelf) Update(_ context.Context, id string, c platform.Change) (platform.Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.members[id]
	if !ok {
		return platform.Member{}, platform.ErrNotFound
	}
	if c.Email != nil && s.holder(*c.Email, id) != "" {
		return platform.Member{}, &platform.Refusal{Reason: "The shelf has this email.", Taken: true}
	}
	set(&m.Email, c.Email)
	set(&m.Name, c.Name)
	set(&m.Note, c.Note)
	set(&m.Labels, c.Labels)
	if c.Subscription != nil {
		m.Subscribed, m.Newsletters = c.Subscription.Subscribed, c.Subscription.Newsletters
	}
	m.UpdatedAt = time.Now()
	s.members[id] = m
	return m, nil
}

// set sets a value to another, if there is one.
func set[T any](value, to *T) {
	if to != nil {
		*value = *to
	}
}

func (s *shelf) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.members[id]; !ok {
		return platform.ErrNotFound
	}
	delete(s.members, id)
	return nil
}

func (s *shelf) Get(ctx context.Context, id string) (platform.Member, error) {
	found, err := s.GetAll(ctx, []string{id})
	if err != nil || len(found) == 0 {
		return platform.Member{}, cmp.Or(err, platform.ErrNotFound)
	}
	return found[0], nil
}

func (s *shelf) GetAll(_ context.Context, ids []string) (found []platform.Member, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if m, ok := s.members[id]; ok {
			found = append(found, m)
		}
	}
	return found, nil
}

func (s *shelf) Count(context.Context) (int, platform.Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.members), platform.Member{}, nil
}

func (s *shelf) FindByEmail(_ context.Context, email string) (platform.Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.holder(email, ""); id != "" {
		return s.members[id], nil
	}
	return platform.Member{}, platform.ErrNotFound
}

func (s *shelf) List(_ context.Context, after string, since time.Time) (page []platform.Member, total int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		if id > after && !s.members[id].UpdatedAt.Before(since) {
			page = append(page, s.members[id])
		}
	}
	return page, len(page), nil
}

// holder is "" unless a member other than other has the email.
func (s *shelf) holder(email, other string) string {
	for id, m := range s.members {
		if id != other && emailaddr.Key(m.Email) == emailaddr.Key(email) {
			return id
		}
	}
	return ""
}

// addShelf adds the shelf to the kinds of platform, as a line in platforms.go would.
func addShelf(t *testing.T) *shelf {
	s := &shelf{members: make(map[string]platform.Member)}
	edgetest.AddKind(t, platform.Kind{
		Name:  "shelf",
		Title: "the shelf",
		URL: platform.Setting{Example: "shelf:books", Check: func(address string) error {
			if !strings.HasPrefix(address, "shelf:") {
				return fmt.Errorf("%q is not a shelf, such as shelf:books", address)
			}
			return nil
		}},
		Client: s,
		Connect: func(of platform.Settings) (platform.Platform, error) {
			if of.URL != "shelf:books" {
				return nil, errors.New("there is no such shelf")
			}
			return s, nil
		},
	})
	return s
}

// onShelf are the members that the shelf has, without what differs from run to run.
func (s *shelf) onShelf() map[string]platform.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.members)
	for id, m := range all {
		m.CreatedAt, m.UpdatedAt = time.Time{}, time.Time{}
		all[id] = m
	}
	return all
}

// A site on a second platform, which can do no more than keep members, is configured
// as one on Ghost is, and its members are brought there.
func TestSecondPlatform(t *testing.T) {
	t.Setenv("LYCHGATE_TEST_SHELF", "shelf:books")
	s := addShelf(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "shelf {env.LYCHGATE_TEST_SHELF} {\n\t\t\t\treconcile 6h\n\t\t\t}"))
	record := func(email, name string) string {
		return `"data":{"guid":"GUID","email":"` + email + `","name":"` + name + `","is_subscribed":true,"note":"","labels":["VIP"],"tier_id":null,"member_id":null,"status":"free","created_at":"TIME","updated_at":"TIME"}`
	}
	jane := platform.Member{ID: "shelf-001", Email: "jane@example.com", Name: "Jane", Subscribed: true, Labels: []string{"VIP"}, Status: "free"}
	renamed := jane
	renamed.Email, renamed.Name = "jane@example.org", "Jane Doe"
	for _, step := range []struct {
		name, method, path, body string
		want                     edgetest.Response
		onShelf                  map[string]platform.Member
	}{
		{
			"create", "POST", "", `{"email":"jane@example.com","name":"Jane","labels":["VIP"]}`,
			exchange.JSON(200, `{"success":true,`+record("jane@example.com", "Jane")+`,"message":"Member created successfully."}`, "Etag", `"TAG"`),
			map[string]platform.Member{"shelf-001": jane},
		},
		{
			"read", "GET", "/jane@example.com", "",
			exchange.JSON(200, `{"success":true,`+record("jane@example.com", "Jane")+`,"message":"Member retrieved successfully."}`, "Etag", `"TAG"`),
			map[string]platform.Member{"shelf-001": jane},
		},
		{
			"update", "PUT", "/jane@example.com", `{"email":"jane@example.org","name":"Jane Doe"}`,
			exchange.JSON(200, `{"success":true,`+record("jane@example.org", "Jane Doe")+`,"message":"Member updated successfully."}`, "Etag", `"TAG"`),
			map[string]platform.Member{"shelf-001": renamed},
		},
		{
			"delete", "DELETE", "/jane@example.org", "",
			exchange.JSON(200, `{"success":true,"data":[],"message":"Member deleted successfully."}`),
			map[string]platform.Member{},
		},
		{
			"read who is gone", "GET", "/jane@example.org", "",
			exchange.JSON(404, `{"success":false,"message":"Member not found.","code":"not_found"}`),
			map[string]platform.Member{},
		},
	} {
		if diff := gocmp.Diff(step.want, edgetest.Plain(e.Call(edgetest.FormKey, step.method, step.path, step.body))); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", step.name, diff)
		}
		if diff := gocmp.Diff(step.onShelf, s.onShelf()); diff != "" {
			t.Errorf("%s: on the shelf: %s", step.name, diff)
		}
	}
	if got := e.Do("PUT", "/ghost/api/admin/members/bulk/"); got.Body != "the site's own page at /ghost/api/admin/members/bulk/" {
		t.Errorf("a request to the site: %v", got)
	}
	gone := exchange.JSON(410, `{"success":false,"message":"No webhook events are wanted at this address.","code":"gone"}`)
	if diff := gocmp.Diff(gone, e.Do("POST", "/integration/webhooks/x")); diff != "" {
		t.Errorf("a webhook event: %s", diff)
	}
	if said := edgetest.LinesWith(e.Logged(), `"level":"error"`) + edgetest.LinesWith(e.Logged(), `"level":"warn"`); said != "" {
		t.Errorf("linesWith(e.logged(), `\"level\":\"error\"`) + linesWith(e.… = %v, want nothing", said)
	}
}

// What staff do on a second platform is seen here, although it sends no events.
func TestComparisonWithSecondPlatform(t *testing.T) {
	s := addShelf(t)
	if _, err := s.Create(t.Context(), platform.Member{Email: "joe@example.com", Name: "Joe"}); err != nil {
		t.Fatalf("s.Create: %v", err)
	}
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "shelf shelf:books"))
	wait.Until(t, func() string {
		if got := e.Call(edgetest.FormKey, "GET", "/joe@example.com", ""); got.Status != 200 {
			return got.Body
		}
		return ""
	})
}

// Mistakes in the configuration of a second platform are said in its words, and those
// that name all platforms name it.
func TestMistakesOfSecondPlatform(t *testing.T) {
	addShelf(t)
	for _, test := range []struct{ name, site, serve, want string }{
		{"address", "platform shelf books", "members_api", `site daily: platform shelf: "books" is not a shelf, such as shelf:books, at Caddyfile:5`},
		{"no address", "platform shelf", "members_api", "platform: write platform none, or platform ghost http://127.0.0.1:2368 {\n\tadmin_key {env.GHOST_ADMIN_KEY}\n}, or platform shelf shelf:books, at Caddyfile:5"},
		{"nobody there", "platform shelf shelf:none", "members_api", "site daily: platform shelf: there is no such shelf, at Caddyfile:5"},
		{"a key", "platform shelf shelf:books {\nadmin_key x\n}", "members_api", `platform shelf has no option "admin_key": it belongs into the block of platform ghost, at Caddyfile:6`},
		{"webhooks", "platform shelf shelf:books {\nwebhooks off\n}", "members_api", `platform shelf has no option "webhooks": it belongs into the block of platform ghost, at Caddyfile:6`},
		{"reconcile", "platform shelf shelf:books {\nreconcile never\n}", "members_api", `site daily: platform shelf: reconcile "never": write off, or a duration of a minute or more, such as 6h, at Caddyfile:6`},
		{"a theme", "platform shelf shelf:books\ntheme nightly {\nrepository https://git.example.com/a.git\n}", "members_api", "site daily: theme nightly: a site with platform shelf has no themes: take the theme out, or write platform ghost, at Caddyfile:6"},
		{"theme_manifest", "platform shelf shelf:books", "theme_manifest", "theme_manifest: needs a site with a Ghost: write platform ghost http://127.0.0.1:2368 into a site, at Caddyfile:10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := "{\n\tlychgate {\n\t\tsite daily {\n\t\t\thosts news.example.com\n" + test.site + "\n\t\t}\n\t}\n}\nhttp://news.example.com:8080 {\n\t" + test.serve + "\n}\n"
			if diff := gocmp.Diff(test.want, saidOf(t, edgetest.Validate(config), config)); diff != "" {
				t.Errorf("gocmp.Diff = %v, want nothing", diff)
			}
		})
	}
}
