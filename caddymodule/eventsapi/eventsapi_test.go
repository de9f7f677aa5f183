package eventsapi_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// An editor's event becomes a post of the theme, with its template and tags, that readers
// and calendars find; and is taken back.
func TestEventsBecomePostsThatReadersFind(t *testing.T) {
	url, key := ghosttest.Real(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), url, key, "6000 1m")), key)
	name := "An evening & <b>more</b> " + h.Unique
	values := map[string]any{
		"name": name, "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_end": "21:00", "event_time_zone": "Europe/Berlin",
		"description": "With wine.", "location": "The Pier", "access": "free", "platform_url": "https://meet.example.com/1", "rsvp_labels": []string{"guests"},
	}
	draft, reply := h.Events(201, "POST", "", h.EventBody(values))
	if reply.Header["Location"] != "/ghost/lychgate/desk/events/"+draft.ID || draft.Post != nil || draft.Status != "draft" ||
		draft.Tag != fmt.Sprintf(`"%d"`, draft.Revision) || fmt.Sprint(draft.Problems) != "[{speaker Speaker is required.}]" {
		t.Errorf(`events = %+v, %v, want Location %q, no post, status "draft", tag %v, problems "[{speaker Speaker is required.}]"`,
			draft, reply, "/ghost/lychgate/desk/events/"+draft.ID, fmt.Sprintf(`"%d"`, draft.Revision))
	}
	if list := h.Do("GET", "/ghost/lychgate/events"); list.Body != `{"events":[],"total":0,"next":null,"messages":{}}` {
		t.Errorf("readers see a draft: %v", list)
	}
	if _, list := h.Events(200, "GET", "?view=drafts&q=EVENING", ""); !strings.Contains(list.Body, `"id":"`+draft.ID+`"`) || !strings.HasSuffix(list.Body, `"total":1,"next":null}`+"\n") {
		t.Errorf("events = %v, want body with %q, body ending with %q",
			list, `"id":"`+draft.ID+`"`, `"total":1,"next":null}`+"\n")
	}
	_, refused := h.Events(422, "POST", "/"+draft.ID+"/publish", "")
	if want := `{"message":"Speaker is required.","problems":[{"field":"speaker","message":"Speaker is required."}]}` + "\n"; refused.Body != want {
		t.Errorf("events = %s, want body %v", refused.Body, want)
	}
	values["speaker"] = "Ada"
	saved, _ := h.Events(200, "PUT", "/"+draft.ID, h.EventBody(values), "If-Match", draft.Tag)
	if again, _ := h.Events(200, "PUT", "/"+draft.ID, h.EventBody(values), "If-Match", draft.Tag); again.Tag != saved.Tag {
		t.Errorf("sent again, as if the response had been lost: %s, not %s", again.Tag, saved.Tag)
	}
	if _, stale := h.Events(412, "PUT", "/"+draft.ID, h.EventBody(map[string]any{"name": "Another"}), "If-Match", draft.Tag); stale.Body != `{"message":"The event was changed since it was read. Read it again."}`+"\n" {
		t.Errorf("events = %v, want body %q", stale, `{"message":"The event was changed since it was read. Read it again."}`+"\n")
	}
	published, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", "", "If-Match", saved.Tag)
	slug, _ := published.Values["slug"].(string)
	if published.Status != "published" || published.Pending != nil || published.Post == nil || !strings.HasPrefix(slug, "an-evening-") {
		t.Fatalf(`events = %+v, want status "published", no pending, a post, slug beginning with "an-evening-"`, published)
	}

	readersGet(h, published)

	// What staff change in Ghost comes back, when somebody looks.
	h.Ghost("PUT", "/posts/"+published.Post.ID+"/", fmt.Sprintf(`{"posts":[{"title":"Renamed %s","custom_excerpt":"In Ghost.","updated_at":%q}]}`, h.Unique, h.UpdatedAt(published.Post.ID)))
	renamed, _ := h.Events(200, "GET", "/"+draft.ID, "")
	if renamed.Values["name"] != "Renamed "+h.Unique || renamed.Values["description"] != "In Ghost." || renamed.Revision == published.Revision {
		t.Errorf(`events = %+v, want name %q, description "In Ghost.", another revision than %v`,
			renamed, "Renamed "+h.Unique, published.Revision)
	}

	// Two who have it open see each other's names.
	editor := "editor" + edgetest.GUIDLike() + "@example.com"
	h.AddStaff(h.Owner, editor, "Editor")
	second := h.SignIn(editor)
	for _, step := range []struct{ cookie, want string }{
		{h.Owner, `{"others":[],`}, {second, `{"others":["Owner"],`}, {h.Owner, `{"others":["Editor"],`}, {h.Owner, `{"others":["Editor"],`},
	} {
		got, err := h.SendBody("POST", "/ghost/lychgate/desk/events/"+draft.ID+"/presence", "", "Cookie", step.cookie, "Origin", h.Base)
		if err != nil || got.Status != 200 || !strings.HasPrefix(got.Body, step.want) {
			t.Errorf("want %s: %v, %v", step.want, got, err)
		}
	}

	plain, err := h.SendBody("POST", "/ghost/lychgate/desk/events", `{"theme": "solo"}`, // as curl -d sends it
		"Cookie", h.Owner, "Origin", h.Base, "Content-Type", "application/x-www-form-urlencoded", "Accept", "*/*")
	if err != nil || plain.Status != http.StatusUnsupportedMediaType || !strings.Contains(plain.Body, `"Send the header Content-Type: application/json."`) {
		t.Errorf("got %v, %v, want no error, status 415, body with %s", plain, err, `"Send the header Content-Type: application/json."`)
	}

	h.Events(200, "POST", "/"+draft.ID+"/cancel", "")
	if page := h.Do("GET", "/"+slug+"/"); !strings.Contains(page.Body, "EventCancelled") {
		t.Errorf(`got %v, want body with "EventCancelled"`, page)
	}
	h.Events(200, "POST", "/"+draft.ID+"/unpublish", "")
	if page := h.Do("GET", "/"+slug+"/"); page.Status != 404 {
		t.Errorf("unpublished: %v", page)
	}
	h.Ghost("DELETE", "/posts/"+published.Post.ID+"/", "")
	if lost, _ := h.Events(200, "GET", "/"+draft.ID, ""); lost.Post != nil || !lost.PostDeleted || lost.Status != "draft" || lost.Pending != nil {
		t.Errorf("its post was deleted in Ghost: %+v", lost)
	}
	if anew, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", ""); anew.Post == nil || anew.PostDeleted || anew.Post.ID == published.Post.ID {
		t.Errorf("published anew: %+v", anew)
	}
	copied, _ := h.Events(201, "POST", "/"+draft.ID+"/duplicate", "", "Idempotency-Key", "copy")
	if again, _ := h.Events(201, "POST", "/"+draft.ID+"/duplicate", "", "Idempotency-Key", "copy"); again.ID != copied.ID {
		t.Errorf("copied again with the key: got %s, want %s", again.ID, copied.ID)
	}
	if copied.Values["event_date"] != nil || copied.Values["slug"] != nil || copied.Values["speaker"] != "Ada" || copied.ID == draft.ID {
		t.Errorf(`events = %+v, want no event_date, no slug, speaker "Ada", another ID than %v`, copied, draft.ID)
	}
	h.Events(204, "DELETE", "/"+draft.ID, "")
	h.Events(404, "GET", "/"+draft.ID, "")
	if left := h.IDs("posts", "title:~'"+h.Unique+"'"); len(left) != 1 {
		t.Errorf("posts %v, want the deleted event's draft", left)
	}
}

// readersGet fails unless readers get the page of the event of TestEventsBecomePostsThatReadersFind, and find it in
// lists and calendars.
func readersGet(h *edgetest.Homepage, published edgetest.Event) {
	slug := published.Values["slug"].(string)
	page := h.Do("GET", "/"+slug+"/")
	data := regexp.MustCompile(`<script type="application/ld\+json">(.*?"eventStatus".*?)</script>`).FindStringSubmatch(page.Body)
	if page.Status != 200 || !strings.Contains(page.Body, "<p>A webinar</p>") || len(data) != 2 {
		h.T.Fatalf(`got %v, want status 200, body with "<p>A webinar</p>", 2 data`, page)
	}
	address := published.Post.URL
	want := fmt.Sprintf(`{"@context":"https://schema.org","@type":"Event","name":"An evening \u0026 \u003cb\u003emore\u003c/b\u003e %s","description":"With wine.",`+
		`"startDate":"2031-05-01T19:00:00+02:00","endDate":"2031-05-01T21:00:00+02:00","eventStatus":"https://schema.org/EventScheduled",`+
		`"eventAttendanceMode":"https://schema.org/MixedEventAttendanceMode",`+
		`"location":[{"@type":"Place","name":"The Pier","address":"The Pier"},{"@type":"VirtualLocation","url":%q}],`+
		`"isAccessibleForFree":true,"offers":{"@type":"Offer","url":%[2]q,"availability":"https://schema.org/InStock"},"url":%[2]q,`+
		`"organizer":{"@type":"Organization","name":"Daily","url":%[3]q}}`, h.Unique, address, strings.TrimSuffix(address, slug+"/"))
	if diff := cmp.Diff(want, data[1]); diff != "" {
		h.T.Errorf("data[1] (-want +got):\n%s", diff)
	}
	if !strings.Contains(page.Body, `<script src=/ghost/lychgate/event.js?en async blocking="render"></script>`) {
		h.T.Errorf("the page does not load the script of events: %s", page.Body)
	}
	if strings.Contains(page.Body, "meet.example.com") || strings.Contains(page.Body, `"guests"`) {
		h.T.Errorf("the page gives away what is for who registered: %s", page.Body)
	}
	if diff := cmp.Diff([]string{"event", "hash-listed", "webinar"}, h.Tags(published.Post.ID)); diff != "" {
		h.T.Errorf("h.tags (-want +got):\n%s", diff)
	}

	// What their scripts and calendars get.
	var list edgetest.Response
	wait.Until(h.T, func() string { // for what was kept of the response before
		if list = h.Do("GET", "/ghost/lychgate/events"); strings.Contains(list.Body, `"total":0`) {
			return "no event yet"
		}
		return ""
	})
	one := h.Do("GET", "/ghost/lychgate/events/"+slug)
	if single := strings.TrimSuffix(one.Body, `,"messages":{}}`) + "}"; list.Body != `{"events":[`+single+`],"total":1,"next":null,"messages":{}}` || one.Status != 200 {
		h.T.Errorf("got %v, %v, want body %q, status 200", one, list, `{"events":[`+single+`],"total":1,"next":null,"messages":{}}`)
	}
	if again := h.Do("GET", "/ghost/lychgate/events", "If-None-Match", list.Header["Etag"]); again.Status != 304 || list.Header["Access-Control-Allow-Origin"] != "*" {
		h.T.Errorf(`got %v, %v, want status 304, Access-Control-Allow-Origin "*"`, again, list)
	}
	for _, path := range []string{"/" + slug + ".ics", ".ics"} {
		file := h.Do("GET", "/ghost/lychgate/events"+path)
		for _, line := range []string{"DTSTART:20310501T170000Z\r\n", "DTEND:20310501T190000Z\r\n", "STATUS:CONFIRMED\r\n", "LOCATION:The Pier\r\n", "UID:" + published.ID + "@lychgate\r\n"} {
			if !strings.Contains(file.Body, line) || file.Header["Content-Type"] != "text/calendar; charset=utf-8" {
				h.T.Errorf("%s lacks %q: %v", path, line, file)
			}
		}
	}
}

// What an editor sees of a featured image: the site's size where the type says nothing, and
// else what is built in. Readers get the texts of the messaging states.
func TestEventSettings(t *testing.T) {
	url, key := ghosttest.Real(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), url, key, "6000 1m")), key)
	phrase := func(want string) {
		t.Helper()
		got := h.Do("GET", "/ghost/lychgate/themes/"+h.Theme+"/event-types", "Cookie", h.Owner)
		if !strings.HasSuffix(got.Body, `"feature_image":{"phrase":"`+want+`"}}],"_errors":[]}`+"\n") {
			t.Errorf("want %s: %v", want, got)
		}
	}
	phrase("1200 x 630 px")
	saved, err := h.SendBody("POST", "/ghost/lychgate/desk/event-settings", "image_size=1600+x+900+px&calendar_name=The+Daily&registered=See+you+there!",
		"Cookie", h.Owner, "Origin", h.Base, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/x-www-form-urlencoded")
	if err != nil || saved.Status != http.StatusSeeOther && saved.Status != http.StatusOK {
		t.Fatalf("got %v, %v, want no error, status 303 or 200", saved, err)
	}
	phrase("1600 x 900 px")
	if calendar := h.Do("GET", "/ghost/lychgate/events.ics"); !strings.Contains(calendar.Body, "\r\nX-WR-CALNAME:The Daily\r\n") {
		t.Errorf("got %v, want body with %q", calendar, "\r\nX-WR-CALNAME:The Daily\r\n")
	}
	if list := h.Do("GET", "/ghost/lychgate/events"); list.Body != `{"events":[],"total":0,"next":null,"messages":{"registered":"See you there!"}}` {
		t.Errorf("got %v, want body %s", list, `{"events":[],"total":0,"next":null,"messages":{"registered":"See you there!"}}`)
	}
}
