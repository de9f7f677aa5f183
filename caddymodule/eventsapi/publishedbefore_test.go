package eventsapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// rawPost has all fields of a post, with its text.
func rawPost(h *edgetest.Homepage, id string) map[string]any {
	h.T.Helper()
	var response struct{ Posts []map[string]any }
	h.Decode(h.Ghost("GET", "/posts/"+id+"/?formats=html,lexical&include=authors,tags,newsletter,tiers", ""), &response)
	return response.Posts[0]
}

// The post of an event that was published before there was a script gets it, and a card for readers without JavaScript. All
// else of the post stays, down to the text and the code of staff beside it.
func TestEventPublishedBefore(t *testing.T) {
	url, key := ghosttest.Real(t)
	store := edgetest.SQLiteStore(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(store, url, key, "6000 1m")), key)
	draft, _ := h.Events(201, "POST", "", h.EventBody(map[string]any{
		"name": "Before " + h.Unique, "event_date": "2031-05-01", "event_time_start": "19:00", "speaker": "Ada", "location": "The Pier", "access": "free",
	}))
	published, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", "")
	id := published.Post.ID
	const script = "<script src=/ghost/lychgate/event.js?en async blocking=\"render\"></script>\n"
	head, _ := rawPost(h, id)["codeinjection_head"].(string)
	if !strings.Contains(head, script) {
		t.Fatalf("the head is %s, want the script in it", head)
	}
	lexical := `{"root":{"children":[{"children":[{"detail":0,"format":0,"mode":"normal","style":"","text":"Staff's text.",` +
		`"type":"extended-text","version":1}],"direction":"ltr","format":"","indent":0,"type":"paragraph","version":1}],"direction":"ltr","format":"","indent":0,"type":"root","version":1}}`
	edited, err := json.Marshal(map[string]any{"posts": []any{map[string]any{
		"updated_at": h.UpdatedAt(id), "lexical": lexical, "meta_title": "Staff's", "featured": true,
		"codeinjection_head": "<style>a{}</style>\n" + strings.Replace(head, script, "", 1) + "\n<meta name=\"staff\">",
		"codeinjection_foot": "<script>/* staff's */</script>",
	}}})
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	h.Ghost("PUT", "/posts/"+id+"/", string(edited))
	before := rawPost(h, id)

	db := edgetest.OpenDatabase(t, store)
	for _, statement := range []string{`UPDATE events SET post = json_remove(post, '$.page', '$.card')`, `UPDATE events_sites SET looked_at = 0`} {
		dbtest.Exec(t, db, statement)
	}
	var after map[string]any
	wait.Until(t, func() string {
		after = rawPost(h, id)
		if head, _ := after["codeinjection_head"].(string); !strings.Contains(head, script) {
			return "the head is " + head
		}
		return ""
	})
	wantHead := strings.Replace(fmt.Sprint(before["codeinjection_head"]), "</script>\n<!-- /lychgate", "</script>\n"+script+"<!-- /lychgate", 1)
	card := regexp.MustCompile(`<lychgate-event data-sum="[0-9a-f]{16}" data-id="` + draft.ID + `"><p dir="auto" lang="en">Thursday, May 1, 2031 at 7:00 PM \(UTC\)</p>\n<p dir="auto">The Pier</p>\n` +
		`<p dir="auto" lang="en"><a href="[^"]+/ghost/lychgate/events/` + draft.ID + `\.html">You can register for this event\.</a></p>\n</lychgate-event>`)
	html, _ := after["html"].(string)
	text, _ := after["lexical"].(string)
	staffs := strings.TrimPrefix(lexical, `{"root":{"children":[`)
	if card.FindString(html) == "" || !strings.HasPrefix(text, `{"root":{"children":[{"type":"html"`) || !strings.HasSuffix(text, "},"+staffs) {
		t.Errorf("the page has %s of %s, want the card before staff's text", html, text)
	}
	before["codeinjection_head"] = wantHead
	before["codeinjection_foot"] = "<script>/* staff's */</script>\n<!-- lychgate-event-text: made anew by each save of the event -->\n<noscript>\n" +
		"<p dir=\"auto\" lang=\"en\">Turn on JavaScript to register.</p>\n</noscript>\n<!-- /lychgate-event-text -->"
	for _, key := range []string{"html", "lexical", "excerpt", "updated_at", "reading_time"} {
		before[key] = after[key]
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the post (-want +got): %s", diff)
	}
	if page := h.Do("GET", "/"+published.Values["slug"].(string)+"/"); !strings.Contains(page.Body, script) || card.FindString(page.Body) == "" {
		t.Errorf("%v, want the script and the text in the page", page)
	}
}
