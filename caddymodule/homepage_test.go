package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// homepage is an edge in front of a Ghost whose active theme has a section hero with the
// slots lead and second, and a section news with the slot first and a picker of its own.
type homepage struct {
	*edge
	theme  string
	unique string // at the end of the tags and titles of this test
	owner  string // the cookies of staff
	token  string // of an integration, which sees posts as Ghost has them
}

// newHomepage gives the Ghost behind an edge a theme with slots, and takes it away after
// the test.
func newHomepage(t *testing.T, e *edge, key string) *homepage {
	t.Helper()
	h := &homepage{edge: e, unique: guidLike(), owner: e.signIn(ghostOwner), token: "Ghost " + adminToken(t, key)}
	h.theme = "homepage-" + h.unique
	before := h.activeTheme()
	if got := h.uploadTheme(h.theme, sourceZip(t, "", h.manifest("Hero")), "Cookie", h.owner); !strings.Contains(got.Body, noFindings) {
		t.Fatalf("uploadTheme = %v, want body with %v", got, noFindings)
	}
	h.activate(h.theme)
	t.Cleanup(func() {
		h.activate(before)
		h.ghost("DELETE", "/themes/"+h.theme+"/", "")
		for _, tag := range []string{"lead", "second", "third_x", "first", "public"} {
			for _, id := range h.ids("tags", "slug:~'"+tag+"-"+h.unique+"',slug:~'hash-"+tag+"-"+h.unique+"'") {
				h.ghost("DELETE", "/tags/"+id+"/", "")
			}
		}
		for _, id := range h.ids("posts", "title:~'"+h.unique+"'") {
			h.ghost("DELETE", "/posts/"+id+"/", "")
		}
	})
	return h
}

func (h *homepage) manifest(section string) string {
	return fmt.Sprintf(`manifest_version: 1
homepage_curation:
  sections:
    - key: hero
      name: %[2]s
      description: The top of the page
      slots:
        - {key: lead, label: Lead, tag: "#lead-%[1]s"}
        - {key: second, label: Second, tag: hash-second-%[1]s}
        - {key: third, label: Third, tag: hash-third_x-%[1]s}
    - key: news
      name: News
      picker: {default_view: search, recent_limit: 2, recent_filter: {tag: kept-%[1]s}}
      slots:
        - {key: first, label: First, tag: public-%[1]s}
`, h.unique, section)
}

// ghost asks Ghost's own API as the owner, and fails the test unless it does what is asked.
func (h *homepage) ghost(method, target, body string) string {
	h.t.Helper()
	return h.askGhost(h.owner, method, target, body)
}

func (h *homepage) activeTheme() string {
	h.t.Helper()
	var list struct {
		Themes []struct {
			Name   string
			Active bool
		}
	}
	h.decode(h.ghost("GET", "/themes/", ""), &list)
	for _, theme := range list.Themes {
		if theme.Active {
			return theme.Name
		}
	}
	return ""
}

func (h *homepage) activate(theme string) {
	h.t.Helper()
	h.ghost("PUT", "/themes/"+theme+"/activate/", "")
}

func (h *homepage) decode(text string, into any) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		h.t.Fatalf("json.Unmarshal: %s: %v", text, err)
	}
}

// addPost makes a published post with tags, one hour later than the one before, and
// returns its ID.
func (h *homepage) addPost(title string, hour int, tags ...string) string {
	h.t.Helper()
	type named struct {
		Name string `json:"name"`
	}
	list := []named{}
	for _, tag := range tags {
		list = append(list, named{tag})
	}
	body, err := json.Marshal(map[string]any{"posts": []any{map[string]any{
		"title": title + " " + h.unique, "status": "published", "published_at": fmt.Sprintf("2026-01-01T%02d:00:00.000Z", hour), "tags": list,
	}}})
	if err != nil {
		h.t.Fatalf("json.Marshal: %v", err)
	}
	var response struct{ Posts []struct{ ID string } }
	h.decode(h.ghost("POST", "/posts/", string(body)), &response)
	return response.Posts[0].ID
}

// kind is posts or tags, and filter is in NQL.
func (h *homepage) ids(kind, filter string) (ids []string) {
	h.t.Helper()
	var response map[string][]struct{ ID string }
	var envelope map[string]json.RawMessage
	text := h.ghost("GET", "/"+kind+"/?limit=100&filter="+url.QueryEscape(filter), "")
	h.decode(text, &envelope)
	delete(envelope, "meta")
	rest, err := json.Marshal(envelope)
	if err != nil {
		h.t.Fatalf("json.Marshal: %v", err)
	}
	h.decode(string(rest), &response)
	for _, one := range response[kind] {
		ids = append(ids, one.ID)
	}
	return ids
}

// tags removes the suffix that makes the slugs this test's.
func (h *homepage) tags(id string) (slugs []string) {
	h.t.Helper()
	var response struct {
		Posts []struct{ Tags []struct{ Slug string } }
	}
	h.decode(h.ghost("GET", "/posts/"+id+"/?include=tags", ""), &response)
	for _, tag := range response.Posts[0].Tags {
		slugs = append(slugs, strings.TrimSuffix(tag.Slug, "-"+h.unique))
	}
	return slugs
}

// ask sends a request to the curation API as a page of the site does.
func (h *homepage) ask(method, path, body string, header ...string) response {
	h.t.Helper()
	header = append([]string{"Cookie", h.owner, "Origin", h.base}, header...)
	got, err := h.sendBody(method, "/ghost/lychgate/curation"+path, body, header...)
	if err != nil {
		h.t.Fatalf("%s %s: sendBody: %v", method, path, err)
	}
	return got
}

// slot is what the API says of a slot, with the posts' titles alone.
type slot struct {
	Key     string
	Posts   []string
	Total   int
	Pending bool
}

// shownSlot is a slot on the wire.
type shownSlot struct {
	Key     string
	Posts   []struct{ Title string }
	Total   int
	Pending *struct{ Problem string }
}

func (h *homepage) plain(s shownSlot) slot {
	plain := slot{Key: s.Key, Total: s.Total, Pending: s.Pending != nil}
	for _, p := range s.Posts {
		plain.Posts = append(plain.Posts, strings.TrimSuffix(p.Title, " "+h.unique))
	}
	return plain
}

func (h *homepage) slots() (slots []slot) {
	h.t.Helper()
	response := h.ask("GET", "", "")
	if response.Status != http.StatusOK {
		h.t.Fatalf("got %v, want status 200", response)
	}
	var shown struct{ Sections []struct{ Slots []shownSlot } }
	h.decode(response.Body, &shown)
	for _, section := range shown.Sections {
		for _, s := range section.Slots {
			slots = append(slots, h.plain(s))
		}
	}
	return slots
}

// change fills or clears a slot, and returns it as the response has it. If Ghost is slow, the response is
// 202, and change returns the slot once Ghost has it.
func (h *homepage) change(method, path, body string) slot {
	h.t.Helper()
	response := h.ask(method, path, body)
	if response.Status == http.StatusAccepted {
		isThis := func(s slot) bool { return s.Key == path[strings.LastIndex(path, "/")+1:] }
		var changed slot
		wait.Until(h.t, func() string {
			slots := h.slots()
			if changed = slots[slices.IndexFunc(slots, isThis)]; changed.Pending {
				return fmt.Sprintf("%s %s is pending: %+v", method, path, changed)
			}
			return ""
		})
		return changed
	}
	if response.Status != http.StatusOK {
		h.t.Fatalf("%s %s: got %v, want status 200", method, path, response)
	}
	var shown shownSlot
	h.decode(response.Body, &shown)
	return h.plain(shown)
}

func (h *homepage) picked(path string) (titles []string) {
	h.t.Helper()
	response := h.ask("GET", path, "")
	if response.Status != http.StatusOK {
		h.t.Fatalf("%s: got %v, want status 200", path, response)
	}
	var shown struct{ Posts []struct{ Title string } }
	h.decode(response.Body, &shown)
	for _, p := range shown.Posts {
		titles = append(titles, strings.TrimSuffix(p.Title, " "+h.unique))
	}
	return titles
}

// each holds all endpoints of the curation API to one response.
func (h *homepage) each(name string, want response, header ...string) {
	h.t.Helper()
	for _, endpoint := range []struct{ method, path, body string }{
		{"GET", "", ""},
		{"HEAD", "", ""},
		{"GET", "/hero/picker", ""},
		{"HEAD", "/hero/picker", ""},
		{"GET", "/hero/lead/history", ""},
		{"HEAD", "/hero/lead/history", ""},
		{"PUT", "/hero/lead", `{"post":"000000000000000000000000"}`},
		{"DELETE", "/hero/lead", ""},
	} {
		want := want
		if endpoint.method == "HEAD" {
			want.Body = ""
		}
		got, err := h.sendBody(endpoint.method, "/ghost/lychgate/curation"+endpoint.path, endpoint.body, append(header, "Sec-Fetch-Site", "same-origin")...)
		if want.Status == http.StatusTooManyRequests && got.Header["Retry-After"] != "" { // which goes down meanwhile
			want.Header, want.Body = got.Header, got.Body
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			h.t.Errorf("%s, %s, %q: response: error %v, want none (-want +got):\n%s", name, endpoint.method, endpoint.path, err, diff)
		}
	}
}
