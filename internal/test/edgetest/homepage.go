package edgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Homepage is an edge in front of a Ghost whose active theme has a section hero with the
// slots lead and second, and a section news with the slot first and a picker of its own.
type Homepage struct {
	*Edge
	Theme  string
	Unique string // at the end of the tags and titles of this test
	Owner  string // the cookies of staff
	token  string // of an integration, which sees posts as Ghost has them
}

// NewHomepage gives the Ghost behind an edge a theme with slots, and takes it away after
// the test.
func NewHomepage(t *testing.T, e *Edge, key string) *Homepage {
	t.Helper()
	h := &Homepage{Edge: e, Unique: GUIDLike(), Owner: e.SignIn(GhostOwner), token: "Ghost " + AdminToken(t, key)}
	h.Theme = "homepage-" + h.Unique
	before := h.activeTheme()
	if got := h.UploadTheme(h.Theme, SourceZip(t, "", h.Manifest("Hero")), "Cookie", h.Owner); !strings.Contains(got.Body, NoFindings) {
		t.Fatalf("uploadTheme = %v, want body with %v", got, NoFindings)
	}
	h.Activate(h.Theme)
	t.Cleanup(func() {
		h.Activate(before)
		h.Ghost("DELETE", "/themes/"+h.Theme+"/", "")
		for _, tag := range []string{"lead", "second", "third_x", "first", "public"} {
			for _, id := range h.IDs("tags", "slug:~'"+tag+"-"+h.Unique+"',slug:~'hash-"+tag+"-"+h.Unique+"'") {
				h.Ghost("DELETE", "/tags/"+id+"/", "")
			}
		}
		for _, id := range h.IDs("posts", "title:~'"+h.Unique+"'") {
			h.Ghost("DELETE", "/posts/"+id+"/", "")
		}
	})
	return h
}

// Manifest declares the slots.
func (h *Homepage) Manifest(section string) string {
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
`, h.Unique, section)
}

// Ghost asks Ghost's own API as the owner, and fails the test unless it does what is asked.
func (h *Homepage) Ghost(method, target, body string) string {
	h.T.Helper()
	return h.askGhost(h.Owner, method, target, body)
}

func (h *Homepage) activeTheme() string {
	h.T.Helper()
	var list struct {
		Themes []struct {
			Name   string
			Active bool
		}
	}
	h.Decode(h.Ghost("GET", "/themes/", ""), &list)
	for _, theme := range list.Themes {
		if theme.Active {
			return theme.Name
		}
	}
	return ""
}

// Activate has Ghost use a theme.
func (h *Homepage) Activate(theme string) {
	h.T.Helper()
	h.Ghost("PUT", "/themes/"+theme+"/activate/", "")
}

// Decode fails the test unless text is JSON.
func (h *Homepage) Decode(text string, into any) {
	h.T.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		h.T.Fatalf("json.Unmarshal: %s: %v", text, err)
	}
}

// AddPost makes a published post with tags, one hour later than the one before, and
// returns its ID.
func (h *Homepage) AddPost(title string, hour int, tags ...string) string {
	h.T.Helper()
	type named struct {
		Name string `json:"name"`
	}
	list := []named{}
	for _, tag := range tags {
		list = append(list, named{tag})
	}
	body, err := json.Marshal(map[string]any{"posts": []any{map[string]any{
		"title": title + " " + h.Unique, "status": "published", "published_at": fmt.Sprintf("2026-01-01T%02d:00:00.000Z", hour), "tags": list,
	}}})
	if err != nil {
		h.T.Fatalf("json.Marshal: %v", err)
	}
	var response struct{ Posts []struct{ ID string } }
	h.Decode(h.Ghost("POST", "/posts/", string(body)), &response)
	return response.Posts[0].ID
}

// IDs finds posts or tags in Ghost; filter is in NQL.
func (h *Homepage) IDs(kind, filter string) (ids []string) {
	h.T.Helper()
	var response map[string][]struct{ ID string }
	var envelope map[string]json.RawMessage
	text := h.Ghost("GET", "/"+kind+"/?limit=100&filter="+url.QueryEscape(filter), "")
	h.Decode(text, &envelope)
	delete(envelope, "meta")
	rest, err := json.Marshal(envelope)
	if err != nil {
		h.T.Fatalf("json.Marshal: %v", err)
	}
	h.Decode(string(rest), &response)
	for _, one := range response[kind] {
		ids = append(ids, one.ID)
	}
	return ids
}

// Tags removes the suffix that makes the slugs this test's.
func (h *Homepage) Tags(id string) (slugs []string) {
	h.T.Helper()
	var response struct {
		Posts []struct{ Tags []struct{ Slug string } }
	}
	h.Decode(h.Ghost("GET", "/posts/"+id+"/?include=tags", ""), &response)
	for _, tag := range response.Posts[0].Tags {
		slugs = append(slugs, strings.TrimSuffix(tag.Slug, "-"+h.Unique))
	}
	return slugs
}

// Ask sends a request to the curation API as a page of the site does.
func (h *Homepage) Ask(method, path, body string, header ...string) Response {
	h.T.Helper()
	header = append([]string{"Cookie", h.Owner, "Origin", h.Base}, header...)
	got, err := h.SendBody(method, "/ghost/lychgate/curation"+path, body, header...)
	if err != nil {
		h.T.Fatalf("%s %s: sendBody: %v", method, path, err)
	}
	return got
}

// Slot is what the API says of a slot, with the posts' titles alone.
type Slot struct {
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

func (h *Homepage) plain(s shownSlot) Slot {
	plain := Slot{Key: s.Key, Total: s.Total, Pending: s.Pending != nil}
	for _, p := range s.Posts {
		plain.Posts = append(plain.Posts, strings.TrimSuffix(p.Title, " "+h.Unique))
	}
	return plain
}

// Slots are all, as the desk has them.
func (h *Homepage) Slots() (slots []Slot) {
	h.T.Helper()
	response := h.Ask("GET", "", "")
	if response.Status != http.StatusOK {
		h.T.Fatalf("got %v, want status 200", response)
	}
	var shown struct{ Sections []struct{ Slots []shownSlot } }
	h.Decode(response.Body, &shown)
	for _, section := range shown.Sections {
		for _, s := range section.Slots {
			slots = append(slots, h.plain(s))
		}
	}
	return slots
}

// Change fills or clears a slot, and returns it as the response has it. If Ghost is slow, the response is
// 202, and change returns the slot once Ghost has it.
func (h *Homepage) Change(method, path, body string) Slot {
	h.T.Helper()
	response := h.Ask(method, path, body)
	if response.Status == http.StatusAccepted {
		isThis := func(s Slot) bool { return s.Key == path[strings.LastIndex(path, "/")+1:] }
		var changed Slot
		wait.Until(h.T, func() string {
			slots := h.Slots()
			if changed = slots[slices.IndexFunc(slots, isThis)]; changed.Pending {
				return fmt.Sprintf("%s %s is pending: %+v", method, path, changed)
			}
			return ""
		})
		return changed
	}
	if response.Status != http.StatusOK {
		h.T.Fatalf("%s %s: got %v, want status 200", method, path, response)
	}
	var shown shownSlot
	h.Decode(response.Body, &shown)
	return h.plain(shown)
}

// Picked has the titles that a picker offers.
func (h *Homepage) Picked(path string) (titles []string) {
	h.T.Helper()
	response := h.Ask("GET", path, "")
	if response.Status != http.StatusOK {
		h.T.Fatalf("%s: got %v, want status 200", path, response)
	}
	var shown struct{ Posts []struct{ Title string } }
	h.Decode(response.Body, &shown)
	for _, p := range shown.Posts {
		titles = append(titles, strings.TrimSuffix(p.Title, " "+h.Unique))
	}
	return titles
}
