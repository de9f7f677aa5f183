package eventsapi_test

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// Whoever reads an event's post without JavaScript, in a feed or in a newsletter learns when and where it is, and finds
// the page to register. The card stays where the editor moves it, and away once it is deleted.
func TestCardReachesReadersWithoutScript(t *testing.T) {
	address, key := ghosttest.Real(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), address, key, "6000 1m")), key)
	values := map[string]any{"name": "Card " + h.Unique, "event_date": "2031-05-01", "event_time_start": "19:00", "speaker": "Ada", "location": "Pier <1>", "access": "free"}
	draft, _ := h.Events(201, "POST", "", h.EventBody(values))
	published, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", "")
	id, slug := published.Post.ID, published.Values["slug"].(string)
	link := "/ghost/lychgate/events/" + draft.ID + ".html"

	var preview struct {
		EmailPreviews []struct{ HTML, Plaintext string } `json:"email_previews"`
	}
	mail := h.Do("GET", "/ghost/api/admin/email_previews/posts/"+id+"/", "Cookie", h.Owner, "Origin", h.Base)
	h.Decode(mail.Body, &preview)
	for where, text := range map[string]string{
		"the page": h.Do("GET", "/"+slug+"/").Body, "the feed": h.Do("GET", "/rss/").Body,
		"the newsletter": preview.EmailPreviews[0].HTML, "the newsletter as text": preview.EmailPreviews[0].Plaintext,
	} {
		plain := html.UnescapeString(html.UnescapeString(text)) // Ghost 5 escapes all text of a newsletter twice
		if !strings.Contains(text, "Thursday, May 1, 2031 at 7:00 PM (UTC)") || !strings.Contains(plain, "Pier <1>") || !strings.Contains(text, link) {
			t.Errorf("%s: %.3000s, want date, place and %s in it", where, text, link)
		}
	}
	if got := h.Do("GET", link); got.Status != 302 || !strings.HasSuffix(got.Header["Location"], "/"+slug+"/") {
		t.Errorf("%s: %v, want a redirect to the page", link, got)
	}
	if page := h.Do("GET", "/"+slug+"/").Body; strings.Count(page, "Thursday, May 1, 2031 at 7:00 PM (UTC)") != 1 || !strings.Contains(page, "Turn on JavaScript to register.") {
		t.Errorf("the page is %s, want the date once, and at its end what a reader needs to register", page)
	}

	// The editor writes before and behind the card, at another moment of the event's change.
	const before, behind = `{"children":[{"detail":0,"format":0,"mode":"normal","style":"","text":"Before.","type":"extended-text","version":1}],"direction":"ltr","format":"","indent":0,"type":"paragraph","version":1}`,
		`{"type":"horizontalrule","version":1}`
	text, _ := rawPost(h, id)["lexical"].(string)
	moved := strings.Replace(text, `"children":[`, `"children":[`+before+",", 1)
	end := strings.LastIndex(moved, `],"direction"`)
	setText(h, id, moved[:end]+","+behind+moved[end:], "public")
	values["location"] = "Pier 2"
	save := func() {
		h.Events(200, "PUT", "/"+draft.ID, h.EventBody(values))
	}
	save()
	text, _ = rawPost(h, id)["lexical"].(string)
	if !strings.HasPrefix(text, `{"root":{"children":[`+before+`,{"type":"html"`) || !strings.Contains(text, behind) || !strings.Contains(text, "Pier 2") || strings.Contains(text, "1&gt;") {
		t.Errorf("the text is %s, want the new place in the card, and the card where the editor put it", text)
	}

	// In a post for members, who does not see the card has the text at the end.
	setText(h, id, text, "members")
	values["location"] = "Pier 3"
	save()
	if page := h.Do("GET", "/"+slug+"/").Body; strings.Count(page, `<p dir="auto">Pier 3</p>`) != 1 || strings.Contains(page, "data-sum") {
		t.Errorf("the page for a guest is %s, want the place at its end alone", page)
	}

	// Deleted, it stays away.
	setText(h, id, `{"root":{"children":[`+before+`],"direction":null,"format":"","indent":0,"type":"root","version":1}}`, "public")
	values["location"] = "Pier 4"
	save()
	if page := h.Do("GET", "/"+slug+"/").Body; strings.Contains(page, "data-sum") || strings.Count(page, `<p dir="auto">Pier 4</p>`) != 1 {
		t.Errorf("the page is %s, want no card, and the place at its end", page)
	}

	// The desk says so, and puts ours back.
	const desk = "/ghost/lychgate/desk/events"
	editor := h.Do("GET", desk+"?event="+draft.ID, "Cookie", h.Owner, "Origin", h.Base, "Accept", "text/html")
	revision := regexp.MustCompile(`name="revision" value="(\d+)">\s*<p>The card that says`).FindStringSubmatch(editor.Body)
	if revision == nil {
		t.Fatalf("the desk: %v, want that the card was deleted", editor)
	}
	form := url.Values{"do": {"card"}, "event": {draft.ID}, "revision": revision[1:]}
	if _, err := h.SendBody("POST", desk, form.Encode(), "Cookie", h.Owner, "Origin", h.Base, "Accept", "text/html", "Content-Type", "application/x-www-form-urlencoded"); err != nil {
		t.Fatalf("h.SendBody: %v", err)
	}
	if page := h.Do("GET", "/"+slug+"/").Body; strings.Count(page, "data-sum") != 1 || strings.Count(page, `<p dir="auto">Pier 4</p>`) != 1 {
		t.Errorf("the page is %s, want our card again", page)
	}

	// So does a program, and the history tells who did.
	setText(h, id, `{"root":{"children":[`+before+`],"direction":null,"format":"","indent":0,"type":"root","version":1}}`, "public")
	save()
	h.Events(200, "POST", "/"+draft.ID+"/card", "")
	if page := h.Do("GET", "/"+slug+"/").Body; strings.Count(page, "data-sum") != 1 {
		t.Errorf("the page is %s, want our card again", page)
	}
	if got := h.Do("GET", desk+"/"+draft.ID+"/history", "Cookie", h.Owner, "Origin", h.Base).Body; strings.Count(got, `"did":"restored"`) != 2 {
		t.Errorf("the history is %s, want that the card was put back twice", got)
	}
}

// setText changes the text of a post, and who may read it, as an editor does.
func setText(h *edgetest.Homepage, id, lexical, visibility string) {
	h.T.Helper()
	body, err := json.Marshal(map[string]any{"posts": []any{map[string]any{"updated_at": h.UpdatedAt(id), "lexical": lexical, "visibility": visibility}}})
	if err != nil {
		h.T.Fatalf("json.Marshal: %v", err)
	}
	h.Ghost("PUT", "/posts/"+id+"/", string(body))
}
