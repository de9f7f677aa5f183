package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// newEvents gives the Ghost behind an edge a theme with event types, and takes it away after
// the test, with the posts that have the test's mark in their titles.
func newEvents(t *testing.T, e *edge, key string) *homepage {
	t.Helper()
	h := &homepage{edge: e, unique: guidLike(), owner: e.signIn(ghostOwner), token: "Ghost " + adminToken(t, key)}
	h.theme = "events-" + h.unique
	before := h.activeTheme()
	post, err := os.ReadFile(ghosttest.Folder(t) + "/content/themes/source/post.hbs")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	theme := sourceZipWith(t, "", map[string]string{
		"custom-webinar.hbs": strings.Replace(string(post), "{{#post}}", "<p>A webinar</p>{{#post}}", 1),
		"lychgate-manifest.yaml": `manifest_version: 1
events:
  default_tags: ["Event ` + h.unique + `", "#listed-` + h.unique + `"]
  types:
    webinar:
      post_template: custom-webinar
      tags: [Webinar ` + h.unique + `]
      required_fields: [name, event_date]
      custom_fields:
        - {key: speaker, type: text, required: true}
`,
	})
	if got := h.uploadTheme(h.theme, theme, "Cookie", h.owner); got.Status != http.StatusOK {
		t.Fatalf("uploadTheme = %v, want status 200", got)
	}
	h.activate(h.theme)
	t.Cleanup(func() {
		h.activate(before)
		h.ghost("DELETE", "/themes/"+h.theme+"/", "")
		for _, id := range h.ids("posts", "title:~'"+h.unique+"'") {
			h.ghost("DELETE", "/posts/"+id+"/", "")
		}
		for _, id := range h.ids("tags", "name:~'"+h.unique+"'") {
			h.ghost("DELETE", "/tags/"+id+"/", "")
		}
	})
	return h
}

// event is what the staff's JSON says of an event.
type event struct {
	ID, Theme, Type, Status string
	Values                  map[string]any
	Revision                int64
	Post                    *struct{ ID, URL, Edit, Status string }
	PostDeleted             bool `json:"post_deleted"`
	Pending                 *struct{ Problem string }
	Problems                []struct{ Field, Message string }

	tag string
}

// events asks the staff's JSON about events, and fails the test unless the response has a
// status. Where Ghost takes longer than an editor waits, as on a busy machine, 200 comes later.
func (h *homepage) events(status int, method, path, body string, header ...string) (e event, got response) {
	h.t.Helper()
	header = append([]string{"Cookie", h.owner, "Origin", h.base, "Content-Type", "application/json"}, header...)
	const desk = "/ghost/lychgate/desk/events"
	got, err := h.sendBody(method, desk+path, body, header...)
	if id, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); err == nil && status == 200 && got.Status == 202 && id != "" {
		wait.Until(h.t, func() string {
			if got, err = h.sendBody("GET", desk+"/"+id, "", header...); err != nil || strings.Contains(got.Body, `"pending":{`) {
				return fmt.Sprint(got, err)
			}
			return ""
		})
	}
	if err != nil || got.Status != status {
		h.t.Fatalf("%s %s: got %v, %v, want no error, status %v", method, path, got, err, status)
	}
	if strings.HasPrefix(got.Body, `{"id"`) {
		h.decode(got.Body, &e)
		e.tag = got.Header["Etag"]
	}
	return e, got
}

// eventBody is an event of the type webinar, as JSON.
func (h *homepage) eventBody(values map[string]any) string {
	h.t.Helper()
	text, err := json.Marshal(map[string]any{"theme": h.theme, "type": "webinar", "values": values})
	if err != nil {
		h.t.Fatalf("json.Marshal: %v", err)
	}
	return string(text)
}

// An editor's event becomes a post of the theme, with its template and tags, that readers
// and calendars find; and is taken back.
func TestEvents(t *testing.T) {
	url, key := ghosttest.Real(t)
	h := newEvents(t, startEdge(t, nil, eventsConfig(sqliteStore(t), url, key, "6000 1m")), key)
	name := "An evening & <b>more</b> " + h.unique
	values := map[string]any{
		"name": name, "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_end": "21:00", "event_time_zone": "Europe/Berlin",
		"description": "With wine.", "location": "The Pier", "access": "free", "platform_url": "https://meet.example.com/1", "rsvp_labels": []string{"guests"},
	}
	draft, reply := h.events(201, "POST", "", h.eventBody(values))
	if reply.Header["Location"] != "/ghost/lychgate/desk/events/"+draft.ID || draft.Post != nil || draft.Status != "draft" ||
		draft.tag != fmt.Sprintf(`"%d"`, draft.Revision) || fmt.Sprint(draft.Problems) != "[{speaker Speaker is required.}]" {
		t.Errorf(`events = %+v, %v, want Location %q, no post, status "draft", tag %v, problems "[{speaker Speaker is required.}]"`,
			draft, reply, "/ghost/lychgate/desk/events/"+draft.ID, fmt.Sprintf(`"%d"`, draft.Revision))
	}
	if list := h.do("GET", "/ghost/lychgate/events"); list.Body != `{"events":[],"total":0,"next":null,"messages":{}}` {
		t.Errorf("readers see a draft: %v", list)
	}
	if _, list := h.events(200, "GET", "?view=drafts&q=EVENING", ""); !strings.Contains(list.Body, `"id":"`+draft.ID+`"`) || !strings.HasSuffix(list.Body, `"total":1,"next":null}`+"\n") {
		t.Errorf("events = %v, want body with %q, body ending with %q",
			list, `"id":"`+draft.ID+`"`, `"total":1,"next":null}`+"\n")
	}
	_, refused := h.events(422, "POST", "/"+draft.ID+"/publish", "")
	if want := `{"message":"Speaker is required.","problems":[{"field":"speaker","message":"Speaker is required."}]}` + "\n"; refused.Body != want {
		t.Errorf("events = %s, want body %v", refused.Body, want)
	}
	values["speaker"] = "Ada"
	saved, _ := h.events(200, "PUT", "/"+draft.ID, h.eventBody(values), "If-Match", draft.tag)
	if again, _ := h.events(200, "PUT", "/"+draft.ID, h.eventBody(values), "If-Match", draft.tag); again.tag != saved.tag {
		t.Errorf("sent again, as if the response had been lost: %s, not %s", again.tag, saved.tag)
	}
	if _, stale := h.events(412, "PUT", "/"+draft.ID, h.eventBody(map[string]any{"name": "Another"}), "If-Match", draft.tag); stale.Body != `{"message":"The event was changed since it was read. Read it again."}`+"\n" {
		t.Errorf("events = %v, want body %q", stale, `{"message":"The event was changed since it was read. Read it again."}`+"\n")
	}
	published, _ := h.events(200, "POST", "/"+draft.ID+"/publish", "", "If-Match", saved.tag)
	slug, _ := published.Values["slug"].(string)
	if published.Status != "published" || published.Pending != nil || published.Post == nil || !strings.HasPrefix(slug, "an-evening-") {
		t.Fatalf(`events = %+v, want status "published", no pending, a post, slug beginning with "an-evening-"`, published)
	}

	// The page that readers get.
	page := h.do("GET", "/"+slug+"/")
	data := regexp.MustCompile(`<script type="application/ld\+json">(.*?"eventStatus".*?)</script>`).FindStringSubmatch(page.Body)
	if page.Status != 200 || !strings.Contains(page.Body, "<p>A webinar</p>") || len(data) != 2 {
		t.Fatalf(`got %v, want status 200, body with "<p>A webinar</p>", 2 data`, page)
	}
	address := published.Post.URL
	want := fmt.Sprintf(`{"@context":"https://schema.org","@type":"Event","name":"An evening \u0026 \u003cb\u003emore\u003c/b\u003e %s","description":"With wine.",`+
		`"startDate":"2031-05-01T19:00:00+02:00","endDate":"2031-05-01T21:00:00+02:00","eventStatus":"https://schema.org/EventScheduled",`+
		`"eventAttendanceMode":"https://schema.org/MixedEventAttendanceMode",`+
		`"location":[{"@type":"Place","name":"The Pier","address":"The Pier"},{"@type":"VirtualLocation","url":%q}],`+
		`"isAccessibleForFree":true,"offers":{"@type":"Offer","url":%[2]q,"availability":"https://schema.org/InStock"},"url":%[2]q,`+
		`"organizer":{"@type":"Organization","name":"Daily","url":%[3]q}}`, h.unique, address, strings.TrimSuffix(address, slug+"/"))
	if diff := cmp.Diff(want, data[1]); diff != "" {
		t.Errorf("data[1] (-want +got):\n%s", diff)
	}
	if !strings.Contains(page.Body, `<script src=/ghost/lychgate/event.js async blocking="render"></script>`) {
		t.Errorf("the page does not load the script of events: %s", page.Body)
	}
	if strings.Contains(page.Body, "meet.example.com") || strings.Contains(page.Body, `"guests"`) {
		t.Errorf("the page gives away what is for who registered: %s", page.Body)
	}
	if diff := cmp.Diff([]string{"event", "hash-listed", "webinar"}, h.tags(published.Post.ID)); diff != "" {
		t.Errorf("h.tags (-want +got):\n%s", diff)
	}

	// What readers' scripts and calendars get.
	var list response
	wait.Until(t, func() string { // for what was kept of the response before
		if list = h.do("GET", "/ghost/lychgate/events"); strings.Contains(list.Body, `"total":0`) {
			return "no event yet"
		}
		return ""
	})
	one := h.do("GET", "/ghost/lychgate/events/"+slug)
	if single := strings.TrimSuffix(one.Body, `,"messages":{}}`) + "}"; list.Body != `{"events":[`+single+`],"total":1,"next":null,"messages":{}}` || one.Status != 200 {
		t.Errorf("got %v, %v, want body %q, status 200", one, list, `{"events":[`+single+`],"total":1,"next":null,"messages":{}}`)
	}
	if again := h.do("GET", "/ghost/lychgate/events", "If-None-Match", list.Header["Etag"]); again.Status != 304 || list.Header["Access-Control-Allow-Origin"] != "*" {
		t.Errorf(`got %v, %v, want status 304, Access-Control-Allow-Origin "*"`, again, list)
	}
	for _, path := range []string{"/" + slug + ".ics", ".ics"} {
		file := h.do("GET", "/ghost/lychgate/events"+path)
		for _, line := range []string{"DTSTART:20310501T170000Z\r\n", "DTEND:20310501T190000Z\r\n", "STATUS:CONFIRMED\r\n", "LOCATION:The Pier\r\n", "UID:" + draft.ID + "@lychgate\r\n"} {
			if !strings.Contains(file.Body, line) || file.Header["Content-Type"] != "text/calendar; charset=utf-8" {
				t.Errorf("%s lacks %q: %v", path, line, file)
			}
		}
	}

	// What staff change in Ghost comes back, when somebody looks.
	h.ghost("PUT", "/posts/"+published.Post.ID+"/", fmt.Sprintf(`{"posts":[{"title":"Renamed %s","custom_excerpt":"In Ghost.","updated_at":%q}]}`, h.unique, h.updatedAt(published.Post.ID)))
	renamed, _ := h.events(200, "GET", "/"+draft.ID, "")
	if renamed.Values["name"] != "Renamed "+h.unique || renamed.Values["description"] != "In Ghost." || renamed.Revision == published.Revision {
		t.Errorf(`events = %+v, want name %q, description "In Ghost.", another revision than %v`,
			renamed, "Renamed "+h.unique, published.Revision)
	}

	// Two who have it open see each other's names.
	editor := "editor" + guidLike() + "@example.com"
	h.addStaff(h.owner, editor, "Editor")
	second := h.signIn(editor)
	for _, step := range []struct{ cookie, want string }{
		{h.owner, `{"others":[],`}, {second, `{"others":["Owner"],`}, {h.owner, `{"others":["Editor"],`}, {h.owner, `{"others":["Editor"],`},
	} {
		got, err := h.sendBody("POST", "/ghost/lychgate/desk/events/"+draft.ID+"/presence", "", "Cookie", step.cookie, "Origin", h.base)
		if err != nil || got.Status != 200 || !strings.HasPrefix(got.Body, step.want) {
			t.Errorf("want %s: %v, %v", step.want, got, err)
		}
	}

	plain, err := h.sendBody("POST", "/ghost/lychgate/desk/events", `{"theme": "solo"}`, // as curl -d sends it
		"Cookie", h.owner, "Origin", h.base, "Content-Type", "application/x-www-form-urlencoded", "Accept", "*/*")
	if err != nil || plain.Status != http.StatusUnsupportedMediaType || !strings.Contains(plain.Body, `"Send the header Content-Type: application/json."`) {
		t.Errorf("got %v, %v, want no error, status 415, body with %s", plain, err, `"Send the header Content-Type: application/json."`)
	}

	h.events(200, "POST", "/"+draft.ID+"/cancel", "")
	if page := h.do("GET", "/"+slug+"/"); !strings.Contains(page.Body, "EventCancelled") {
		t.Errorf(`got %v, want body with "EventCancelled"`, page)
	}
	h.events(200, "POST", "/"+draft.ID+"/unpublish", "")
	if page := h.do("GET", "/"+slug+"/"); page.Status != 404 {
		t.Errorf("unpublished: %v", page)
	}
	h.ghost("DELETE", "/posts/"+published.Post.ID+"/", "")
	if lost, _ := h.events(200, "GET", "/"+draft.ID, ""); lost.Post != nil || !lost.PostDeleted || lost.Status != "draft" || lost.Pending != nil {
		t.Errorf("its post was deleted in Ghost: %+v", lost)
	}
	if anew, _ := h.events(200, "POST", "/"+draft.ID+"/publish", ""); anew.Post == nil || anew.PostDeleted || anew.Post.ID == published.Post.ID {
		t.Errorf("published anew: %+v", anew)
	}
	copied, _ := h.events(201, "POST", "/"+draft.ID+"/duplicate", "", "Idempotency-Key", "copy")
	if again, _ := h.events(201, "POST", "/"+draft.ID+"/duplicate", "", "Idempotency-Key", "copy"); again.ID != copied.ID {
		t.Errorf("copied again with the key: got %s, want %s", again.ID, copied.ID)
	}
	if copied.Values["event_date"] != nil || copied.Values["slug"] != nil || copied.Values["speaker"] != "Ada" || copied.ID == draft.ID {
		t.Errorf(`events = %+v, want no event_date, no slug, speaker "Ada", another ID than %v`, copied, draft.ID)
	}
	h.events(204, "DELETE", "/"+draft.ID, "")
	h.events(404, "GET", "/"+draft.ID, "")
	if left := h.ids("posts", "title:~'"+h.unique+"'"); len(left) != 1 {
		t.Errorf("posts %v, want the deleted event's draft", left)
	}
}

// What an editor sees of a featured image: the site's size where the type says nothing, and
// else what is built in. Readers get the texts of the messaging states.
func TestEventSettings(t *testing.T) {
	url, key := ghosttest.Real(t)
	h := newEvents(t, startEdge(t, nil, eventsConfig(sqliteStore(t), url, key, "6000 1m")), key)
	phrase := func(want string) {
		t.Helper()
		got := h.do("GET", "/ghost/lychgate/themes/"+h.theme+"/event-types", "Cookie", h.owner)
		if !strings.HasSuffix(got.Body, `"feature_image":{"phrase":"`+want+`"}}],"_errors":[]}`+"\n") {
			t.Errorf("want %s: %v", want, got)
		}
	}
	phrase("1200 x 630 px")
	saved, err := h.sendBody("POST", "/ghost/lychgate/desk/event-settings", "image_size=1600+x+900+px&calendar_name=The+Daily&registered=See+you+there!",
		"Cookie", h.owner, "Origin", h.base, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/x-www-form-urlencoded")
	if err != nil || saved.Status != http.StatusSeeOther && saved.Status != http.StatusOK {
		t.Fatalf("got %v, %v, want no error, status 303 or 200", saved, err)
	}
	phrase("1600 x 900 px")
	if calendar := h.do("GET", "/ghost/lychgate/events.ics"); !strings.Contains(calendar.Body, "\r\nX-WR-CALNAME:The Daily\r\n") {
		t.Errorf("got %v, want body with %q", calendar, "\r\nX-WR-CALNAME:The Daily\r\n")
	}
	if list := h.do("GET", "/ghost/lychgate/events"); list.Body != `{"events":[],"total":0,"next":null,"messages":{"registered":"See you there!"}}` {
		t.Errorf("got %v, want body %s", list, `{"events":[],"total":0,"next":null,"messages":{"registered":"See you there!"}}`)
	}
}

// updatedAt is as Ghost writes it.
func (h *homepage) updatedAt(id string) string {
	h.t.Helper()
	var response struct {
		Posts []struct {
			UpdatedAt string `json:"updated_at"`
		}
	}
	h.decode(h.ghost("GET", "/posts/"+id+"/", ""), &response)
	return response.Posts[0].UpdatedAt
}
