package eventsapi_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A program gives a draft a post for its text. What Ghost does with that post, it reads of the event.
func TestTextOfADraft(t *testing.T) {
	url, key := ghosttest.Real(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), url, key, "6000 1m")), key)
	values := map[string]any{"name": "Party " + h.Unique, "event_date": "2031-05-01"}
	draft, _ := h.Events(201, "POST", "", h.EventBody(values))
	written, _ := h.Events(200, "POST", "/"+draft.ID+"/write", "", "If-Match", draft.Tag)
	if written.Post == nil || written.Post.Status != "draft" || written.Status != "draft" || !strings.Contains(written.Post.URL, "/p/") || written.Pending != nil {
		t.Fatalf("got %+v, want a draft with a post and its preview", written)
	}
	if again, _ := h.Events(200, "POST", "/"+draft.ID+"/write", ""); again.Tag != written.Tag {
		t.Errorf("written again, it has the ETag %s, want %s: nothing is changed", again.Tag, written.Tag)
	}
	page := func() string {
		t.Helper()
		_, path, _ := strings.Cut(written.Post.URL, "/p/")
		got := h.Do("GET", "/p/"+path)
		if got.Status != 200 {
			t.Fatalf("the preview at %s: %v", written.Post.URL, got)
		}
		return got.Body
	}
	if strings.Contains(page(), `id="lychgate-event"`) {
		t.Errorf("the preview shows an event that cannot be published: %s", page())
	}
	values["speaker"] = "Ada"
	h.Events(200, "PUT", "/"+draft.ID, h.EventBody(values))
	if !strings.Contains(page(), `id="lychgate-event"`) {
		t.Errorf("the preview does not show the event: %s", page())
	}

	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	status := func(fields string) (reply edgetest.Response) {
		t.Helper()
		h.Ghost("PUT", "/posts/"+written.Post.ID+"/", fmt.Sprintf(`{"posts":[{%s,"updated_at":%q}]}`, fields, h.UpdatedAt(written.Post.ID)))
		_, reply = h.Events(200, "GET", "/"+draft.ID, "")
		return reply
	}
	if got, want := status(fmt.Sprintf(`"status":"scheduled","published_at":%q`, at.Format(time.RFC3339))), fmt.Sprintf(`"status":"scheduled","publish_at":%q`, at.Format("2006-01-02T15:04:05Z")); !strings.Contains(got.Body, want) || !strings.Contains(got.Body, `"status":"draft"`) {
		t.Errorf("got %s, want %s", got.Body, want)
	}
	if got := status(`"status":"published"`); !strings.Contains(got.Body, `"status":"published","values"`) {
		t.Errorf("published in Ghost: got %s, want it published", got.Body)
	}

	_, history := h.Events(200, "GET", "/"+draft.ID+"/history", "")
	var did struct{ History []struct{ By, Did string } }
	h.Decode(history.Body, &did)
	if diff := cmp.Diff([]struct{ By, Did string }{{"", "published"}, {"", "scheduled"}, {"Owner", "changed"}, {"Owner", "written"}, {"Owner", "created"}}, did.History); diff != "" {
		t.Errorf("the history (-want +got): %s", diff)
	}
	if got := h.Do("HEAD", "/ghost/lychgate/desk/events/"+draft.ID+"/history", "Cookie", h.Owner); got.Status != 200 {
		t.Errorf("the head of the history: %v", got)
	}

	copies := func() string {
		t.Helper()
		_, got := h.Events(201, "POST", "/"+draft.ID+"/copies", `{"date":"2031-05-08","until":"2031-05-15"}`, "Idempotency-Key", "weekly")
		return got.Body
	}
	if first := copies(); strings.Count(first, `"status":"draft"`) != 2 || !strings.Contains(first, `"event_date":"2031-05-15"`) {
		t.Errorf("got %s, want two drafts", first)
	} else if again := copies(); again != first {
		t.Errorf("asked again: got %s, want %s", again, first)
	}

	// They are published together, with the same name: each post gets a slug of its own.
	if _, got := h.Events(202, "POST", "/"+draft.ID+"/publish-series", ""); !strings.Contains(got.Body, `"unready":[],"left":0`) {
		t.Errorf("publishing the series: got %s, want both published", got.Body)
	}
	wait.Until(t, func() string {
		_, list := h.Events(200, "GET", "?series="+draft.ID, "")
		slugs := regexp.MustCompile(`"slug":"[^"]+"`).FindAllString(list.Body, -1)
		slices.Sort(slugs)
		if strings.Count(list.Body, `"status":"published","values"`) != 3 || strings.Count(list.Body, `"pending":null`) != 3 || len(slices.Compact(slugs)) != 3 {
			return "the events of the series are " + list.Body
		}
		return ""
	})

	// An event of a type that the theme does not have.
	other, _ := h.Events(201, "POST", "", h.EventBody(values))
	h.Events(200, "PUT", "/"+other.ID, strings.Replace(h.EventBody(values), `"webinar"`, `"ball"`, 1))
	const gone = "The theme has no such event type any more. Choose another one."
	_, refused := h.Events(422, "POST", "/"+other.ID+"/write", "")
	if diff := cmp.Diff(fmt.Sprintf("{\"message\":%q,\"problems\":[{\"field\":\"type\",\"message\":%q}]}\n", gone, gone), refused.Body); diff != "" {
		t.Errorf("an event of a type that is gone (-want +got): %s", diff)
	}
}

// A draft whose texts are too long for its page stays one when staff give its post the name that it lacks
// and publish it, as the desk would not publish it either. Its problems say why.
func TestStaffPublishTooMuch(t *testing.T) {
	url, key := ghosttest.Real(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), url, key, "6000 1m")), key)
	draft, _ := h.Events(201, "POST", "", h.EventBody(map[string]any{"event_date": "2031-05-01", "speaker": strings.Repeat("x", 65000)}))
	written, _ := h.Events(200, "POST", "/"+draft.ID+"/write", "")
	h.Ghost("PUT", "/posts/"+written.Post.ID+"/", fmt.Sprintf(`{"posts":[{"title":%q,"status":"published","updated_at":%q}]}`, "Ball "+h.Unique, h.UpdatedAt(written.Post.ID)))
	got, _ := h.Events(200, "GET", "/"+draft.ID, "")
	type problem = struct{ Field, Message string }
	type state struct {
		Status, Post string
		Name         any
		Problems     []problem
	}
	want := state{"draft", "published", "Ball " + h.Unique, []problem{{"description", "The event's texts are too long for its page all together. Shorten them."}}}
	if diff := cmp.Diff(want, state{got.Status, got.Post.Status, got.Values["name"], got.Problems}); diff != "" || got.Pending != nil {
		t.Errorf("pending %+v, want nothing; the event (-want +got):\n%s", got.Pending, diff)
	}
}
