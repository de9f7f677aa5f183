package staffdesk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
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

// Nobody who may not gets to see or change the homepage, and what cannot be done is said.
func TestHomepageRefuses(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.HomepageConfig(edgetest.SQLiteStore(t), url, key))
	h := edgetest.NewHomepage(t, e, key)
	one, two := h.AddPost("One", 1, "public-"+h.Unique), h.AddPost("Two", 2, "public-"+h.Unique)
	choice := `{"post":"` + one + `"}`

	notEditor := exchange.Staff(403, `{"message":"Owners, administrators and editors may do this."}`)
	for role, want := range map[string]edgetest.Response{
		"Administrator": {Status: 200}, "Editor": {Status: 200}, "Super Editor": {Status: 200},
		"Author": notEditor, "Contributor": notEditor,
	} {
		email := strings.ReplaceAll(strings.ToLower(role), " ", "-") + edgetest.GUIDLike() + "@example.com"
		e.AddStaff(h.Owner, email, role)
		cookie := e.SignIn(email)
		if want.Status == 403 {
			h.Each(role, want, "Cookie", cookie, "Origin", e.Base)
			continue
		}
		for _, endpoint := range []struct{ method, path, body string }{
			{"GET", "", ""}, {"GET", "/hero/picker", ""}, {"PUT", "/hero/lead", choice}, {"DELETE", "/hero/lead", ""},
		} {
			got, err := e.SendBody(endpoint.method, "/ghost/lychgate/curation"+endpoint.path, endpoint.body, "Cookie", cookie, "Origin", e.Base)
			if got.Status != 200 || err != nil {
				t.Errorf("%s, %s %s: got %v%v, want status 200, no error", role, endpoint.method, endpoint.path, got, err)
			}
		}
	}

	failure := func(status int, message string, header ...string) edgetest.Response {
		text, err := json.Marshal(map[string]string{"message": message})
		if err != nil {
			t.Fatalf("json.Marshal: %v", err)
		}
		return exchange.Staff(status, string(text), header...)
	}
	notAllowed := func(allow string) edgetest.Response {
		return failure(405, "The method is not allowed here.", "Allow", allow)
	}
	noSlot, noSection := failure(404, "The active theme has no such slot. Load the page again."), failure(404, "The active theme has no such section. Load the page again.")
	noPost := failure(404, "The post does not exist any more. Choose another.")
	noEndpoint := failure(404, "There is no such endpoint.")
	noChoice := failure(422, `Send JSON such as {"post": "5ddc9141c35e7700383b2937"}.`)
	switched := failure(409, "Another theme was made the active one meanwhile. Load the page again.")
	elsewhere := failure(403, "The request must come from a page of this site: its Origin header must name this site.")
	h.Each("nobody", failure(401, "Sign in to Ghost's admin on this site first."))
	for _, host := range []string{"elsewhere.example.com", "bare.example.com"} {
		h.Each(host, failure(404, "There is no site with a Ghost at this address."), "Host", host)
	}
	as := func(header ...string) []string { return header }
	for _, test := range []struct {
		name, method, path, body string
		header                   []string
		want                     edgetest.Response
	}{
		{"another site's page", "PUT", "/hero/lead", choice, as("Sec-Fetch-Site", "cross-site"), elsewhere},
		{"another site's page clears", "DELETE", "/hero/lead", "", as("Sec-Fetch-Site", "cross-site"), elsewhere},
		{"POST", "POST", "", "", nil, notAllowed("GET, HEAD")},
		{"reading a slot", "GET", "/hero/lead", "", nil, notAllowed("PUT, DELETE")},
		{"POST to the picker", "POST", "/hero/picker", "", nil, notAllowed("GET, HEAD, PUT, DELETE")},
		{"POST to a history", "POST", "/hero/lead/history", "", nil, notAllowed("GET, HEAD")},
		{"the history of no slot", "GET", "/hero/none/history", "", nil, noSlot},
		{"the history of no slot, without the body", "HEAD", "/hero/none/history", "", nil, edgetest.Response{Status: 404, Header: noSlot.Header}},
		{"a section alone", "GET", "/hero", "", nil, noEndpoint},
		{"too deep", "PUT", "/hero/lead/x", choice, nil, noEndpoint},
		{"no section", "PUT", "/none/lead", choice, nil, noSlot},
		{"no slot", "PUT", "/hero/none", choice, nil, noSlot},
		{"no slot to clear", "DELETE", "/hero/first", "", nil, noSlot},
		{"a slot that needs escaping", "PUT", "/hero/%2e%2e", choice, nil, noSlot},
		{"no section to pick for", "GET", "/none/picker", "", nil, noSection},
		{"no view", "GET", "/hero/picker?view=old", "", nil, failure(422, "The view is recent or search.")},
		{"no view, without the body", "HEAD", "/hero/picker?view=old", "", nil, edgetest.Response{Status: 422, Header: noSlot.Header}},
		{"no post", "PUT", "/hero/lead", `{"post":"000000000000000000000000"}`, nil, noPost},
		{"another path as a post", "PUT", "/hero/lead", `{"post":"../members/"}`, nil, noPost},
		{"an empty post", "PUT", "/hero/lead", `{"post":""}`, nil, noChoice},
		{"no body", "PUT", "/hero/lead", "", nil, noChoice},
		{"no JSON", "PUT", "/hero/lead", "post=" + one, nil, noChoice},
		{"a number", "PUT", "/hero/lead", `{"post":1}`, nil, noChoice},
		{"a post to clear", "DELETE", "/hero/lead", choice, nil, noChoice},
		{"too large", "PUT", "/hero/lead", `{"post":"` + strings.Repeat("1", 20<<10) + `"}`, nil, failure(413, "The request's body is too large.")},
		{"too large to clear", "DELETE", "/hero/lead", `{"theme":"` + strings.Repeat("1", 20<<10) + `"}`, nil, failure(413, "The request's body is too large.")},
		{"no JSON to clear", "DELETE", "/hero/lead", "x", nil, noChoice},
		{"another theme", "PUT", "/hero/lead", `{"post":"` + one + `","theme":"source"}`, nil, switched},
		{"another theme to clear", "DELETE", "/hero/lead", `{"theme":"source"}`, nil, switched},
		{"a tag of readers", "PUT", "/news/first", choice, nil, failure(409, "2 posts carry this tag, which readers see. "+
			"Choosing a post takes it from all others: confirm that, or take it from them in the platform's admin first.")},
		{"a tag of readers to clear", "DELETE", "/news/first", "", nil, failure(409, "2 posts carry this tag, which readers see. "+
			"Choosing a post takes it from all others: confirm that, or take it from them in the platform's admin first.")},
	} {
		if diff := cmp.Diff(test.want, h.Ask(test.method, test.path, test.body, test.header...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	if got := [][]string{h.Tags(one), h.Tags(two)}; !slices.Equal(got[0], []string{"public"}) || !slices.Equal(got[1], []string{"public"}) {
		t.Errorf("what was refused changed tags: %q", got)
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
	h.Each("no manifest", failure(404, "The theme has no manifest."), "Cookie", h.Owner, "Origin", h.Base)

	// Anyone who makes up sessions is told to wait.
	forged := []string{"Cookie", strings.Replace(h.Owner, "s%3A", "s%3Ax", 1), "X-Forwarded-For", "192.0.2.1"}
	for range 30 {
		e.Do("GET", "/ghost/lychgate/curation", forged...)
	}
	h.Each("too many", edgetest.Response{Status: 429}, forged...)
}
