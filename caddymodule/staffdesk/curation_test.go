package staffdesk_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// An editor fills the slots of the homepage, and Ghost has just that: the tags of the slots
// move, and no other changes.
func TestEditorsFillTheSlotsOfTheHomepage(t *testing.T) {
	url, key := ghosttest.Real(t)
	h := edgetest.NewHomepage(t, edgetest.StartEdge(t, nil, edgetest.HomepageConfig(edgetest.SQLiteStore(t), url, key)), key)
	one := h.AddPost("One", 1, "News", "kept-"+h.Unique)
	two := h.AddPost("<b>Two</b> \"&", 2, "kept-"+h.Unique, "Sport")
	three := h.AddPost("Three 100%", 3)

	whole := h.Ask("GET", "", "")
	want := exchange.Staff(200, strings.ReplaceAll(`{"theme":"homepage-U","is_latest":true,"sections":[`+
		`{"key":"hero","name":"Hero","description":"The top of the page","picker":{"default_view":"recent","recent_limit":20},"slots":[`+
		`{"key":"lead","label":"Lead","tag":"#lead-U","posts":[],"total":0,"pending":null},`+
		`{"key":"second","label":"Second","tag":"hash-second-U","posts":[],"total":0,"pending":null},`+
		`{"key":"third","label":"Third","tag":"hash-third_x-U","posts":[],"total":0,"pending":null}]},`+
		`{"key":"news","name":"News","description":"","picker":{"default_view":"search","recent_limit":2,"recent_filter":{"tag":"kept-U"}},"slots":[`+
		`{"key":"first","label":"First","tag":"public-U","posts":[],"total":0,"pending":null}]}]}`, "U", h.Unique))
	if diff := cmp.Diff(want, whole); diff != "" {
		t.Errorf("whole (-want +got):\n%s", diff)
	}
	want.Body = ""
	if diff := cmp.Diff(want, h.Ask("HEAD", "", "")); diff != "" {
		t.Errorf("h.ask (-want +got):\n%s", diff)
	}

	filled := h.Ask("PUT", "/hero/lead", `{"post":"`+one+`"}`)
	want = exchange.Staff(200, `{"key":"lead","label":"Lead","tag":"#lead-`+h.Unique+`","posts":[{"id":"`+one+`","title":"One `+h.Unique+
		`","status":"published","picture":null,"authors":["Owner"],"published_at":"2026-01-01T01:00:00Z","updated_at":"TIME","edit":"/ghost/#/editor/post/`+one+`"}],"total":1,"pending":null}`)
	filled.Body = regexp.MustCompile(`"updated_at":"20[0-9T:-]{17}Z"`).ReplaceAllString(filled.Body, `"updated_at":"TIME"`)
	if diff := cmp.Diff(want, filled); diff != "" {
		t.Errorf("filled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"news", "kept", "hash-lead"}, h.Tags(one)); diff != "" {
		t.Errorf("h.tags (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		method, path, body string
		want               edgetest.Slot
	}{
		{"PUT", "/hero/second", `{"post":"` + one + `"}`, edgetest.Slot{Key: "second", Posts: []string{"One"}, Total: 1}},
		{"PUT", "/hero/lead", `{"post":"` + two + `"}`, edgetest.Slot{Key: "lead", Posts: []string{`<b>Two</b> "&`}, Total: 1}},
		{"PUT", "/hero/lead", `{"post":"` + two + `"}`, edgetest.Slot{Key: "lead", Posts: []string{`<b>Two</b> "&`}, Total: 1}},
		{"PUT", "/news/first", `{"post":"` + three + `","theme":"` + h.Theme + `"}`, edgetest.Slot{Key: "first", Posts: []string{"Three 100%"}, Total: 1}},
		{"PUT", "/hero/third", `{"post":"` + one + `"}`, edgetest.Slot{Key: "third", Posts: []string{"One"}, Total: 1}},
		{"DELETE", "/hero/third", "", edgetest.Slot{Key: "third"}},
		{"DELETE", "/hero/second", "", edgetest.Slot{Key: "second"}},
		{"DELETE", "/hero/second", `{"theme":"` + h.Theme + `"}`, edgetest.Slot{Key: "second"}},
	} {
		if diff := cmp.Diff(test.want, h.Change(test.method, test.path, test.body)); diff != "" {
			t.Errorf("%s %s: response (-want +got):\n%s", test.method, test.path, diff)
		}
	}
	if diff := cmp.Diff([][]string{{"news", "kept"}, {"kept", "sport", "hash-lead"}, {"public"}}, [][]string{h.Tags(one), h.Tags(two), h.Tags(three)}); diff != "" {
		t.Errorf("[][]string{h.tags(one), h.tags(two), h.tags(three)} (-want +got):\n%s", diff)
	}

	history := h.Ask("GET", "/hero/lead/history", "")
	history.Body = regexp.MustCompile(`"at":"20[0-9T:-]{17}Z"`).ReplaceAllString(history.Body, `"at":"TIME"`)
	entry := func(title string) string {
		return fmt.Sprintf(`{"at":"TIME","by":"Owner","did":"filled","about":%q}`, title+" "+h.Unique)
	}
	again := entry(`<b>Two</b> "&`)
	if diff := cmp.Diff(exchange.Staff(200, `{"history":[`+again+`,`+again+`,`+entry("One")+`]}`), history); diff != "" {
		t.Errorf("the history of a slot (-want +got):\n%s", diff)
	}
	if got := h.Ask("HEAD", "/hero/lead/history", ""); got.Status != http.StatusOK || got.Body != "" {
		t.Errorf("got %v, want status 200, no body", got)
	}

	for path, want := range map[string][]string{
		"/hero/picker?view=search&q=" + h.Unique:                         {"Three 100%", `<b>Two</b> "&`, "One"},
		"/hero/picker?view=search&q=100%25+" + h.Unique:                  {"Three 100%"},
		"/hero/picker?view=search&q=%3Cb%3E+" + h.Unique:                 {`<b>Two</b> "&`},
		"/hero/picker?view=search&q=" + h.Unique + "+none":               nil,
		"/hero/picker?view=search":                                       nil,
		"/hero/picker?view=search&most=80&q=" + h.Unique + "+thr%C3%A9e": {"Three 100%"},
		"/news/picker?view=recent&events=without":                        {`<b>Two</b> "&`, "One"},
		"/news/picker?view=recent":                                       {`<b>Two</b> "&`, "One"},
		"/news/picker?q=" + h.Unique:                                     {`<b>Two</b> "&`, "One"},
		"/news/picker?q=" + h.Unique + "+none":                           nil, // a search, as the theme declares
	} {
		if diff := cmp.Diff(want, h.Picked(path)); diff != "" {
			t.Errorf("%s: picked (-want +got):\n%s", path, diff)
		}
	}
	if got := h.Picked("/hero/picker"); len(got) == 0 || len(got) > 20 {
		t.Errorf("recent posts: %q", got)
	}
	if got := h.Ask("HEAD", "/hero/picker", ""); got.Status != http.StatusOK || got.Body != "" {
		t.Errorf("got %v, want status 200, no body", got)
	}
}

// What a real Ghost says decides who may fill slots, with which posts, and from how many posts a tag is taken. The
// theme that was uploaded last decides which slots there are.
func TestHomepageGoesByGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.HomepageConfig(edgetest.SQLiteStore(t), url, key))
	h := edgetest.NewHomepage(t, e, key)
	one, two := h.AddPost("One", 1, "public-"+h.Unique), h.AddPost("Two", 2, "public-"+h.Unique)
	author := "author" + edgetest.GUIDLike() + "@example.com"
	e.AddStaff(h.Owner, author, "Author")
	choice := `{"post":"` + one + `"}`
	for _, test := range []struct {
		name, path, body, cookie, host string
		want                           exchange.Response
	}{
		{"an author", "/hero/lead", choice, e.SignIn(author), "", exchange.Staff(403, `{"message":"Owners, administrators and editors may do this."}`)},
		{"no site", "/hero/lead", choice, h.Owner, "elsewhere.example.com", exchange.Staff(404, `{"message":"There is no site with a Ghost at this address."}`)},
		{"a site without a Ghost", "/hero/lead", choice, h.Owner, "bare.example.com", exchange.Staff(404, `{"message":"There is no site with a Ghost at this address."}`)},
		{"no post", "/hero/lead", `{"post":"000000000000000000000000"}`, h.Owner, "", exchange.Staff(404, `{"message":"The post does not exist any more. Choose another."}`)},
		{"a tag of readers", "/news/first", choice, h.Owner, "", exchange.Staff(409, `{"message":"2 posts carry this tag, which readers see. `+
			`Choosing a post takes it from all others: confirm that, or take it from them in the platform's admin first."}`)},
	} {
		header := []string{"Cookie", test.cookie, "Origin", h.Base}
		if test.host != "" {
			header = append(header, "Host", test.host)
		}
		got, err := h.SendBody("PUT", "/ghost/lychgate/curation"+test.path, test.body, header...)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: response: error %v, want none (-want +got):\n%s", test.name, err, diff)
		}
	}
	if diff := cmp.Diff([][]string{{"public"}, {"public"}}, [][]string{h.Tags(one), h.Tags(two)}); diff != "" {
		t.Errorf("the tags after what was refused (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(edgetest.Slot{Key: "first", Posts: []string{"One"}, Total: 1}, h.Change("PUT", "/news/first", `{"post":"`+one+`","from_all":true}`)); diff != "" {
		t.Errorf("h.change (-want +got):\n%s", diff)
	}

	// A manifest with findings leaves the earlier one in use, and that is said. A theme
	// without one has no homepage, at once.
	h.UploadTheme(h.Theme, edgetest.SourceZip(t, "", strings.Replace(h.Manifest("Later"), "name: News", "title: News", 1)), "Cookie", h.Owner)
	if got := h.Ask("GET", "", ""); !strings.Contains(got.Body, `"is_latest":false,"sections":[{"key":"hero","name":"Hero"`) {
		t.Errorf("got %v, want body with %s", got, `"is_latest":false,"sections":[{"key":"hero","name":"Hero"`)
	}
	h.UploadTheme(h.Theme, edgetest.SourceZip(t, "", ""), "Cookie", h.Owner)
	if diff := cmp.Diff(exchange.Staff(404, `{"message":"The theme has no manifest."}`), h.Ask("GET", "", "")); diff != "" {
		t.Errorf("no manifest: response (-want +got):\n%s", diff)
	}
}
