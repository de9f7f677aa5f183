package eventsapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// A post that staff scheduled in Ghost a moment ago, perhaps with an email, is not published with its series. The other
// drafts get posts, with slugs of their own.
func TestSeriesLeavesScheduledPosts(t *testing.T) {
	address, key := ghosttest.Real(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), address, key, "6000 1m")), key)
	draft, _ := h.Events(201, "POST", "", h.EventBody(map[string]any{"name": "Choir " + h.Unique, "event_date": "2031-05-01", "speaker": "Ada"}))
	send := func(path, body string) edgetest.Response {
		t.Helper()
		got, err := h.SendBody("POST", "/ghost/lychgate/desk/events/"+draft.ID+path, body, "Cookie", h.Owner, "Origin", h.Base, "Content-Type", "application/json")
		if err != nil {
			t.Fatalf("POST %s: %v", path, err)
		}
		return got
	}
	if got := send("/copies", `{"date":"2031-05-08","every":"two_weeks","until":"2031-05-22"}`); got.Status != 201 {
		t.Fatalf("copying: %v, want 201", got)
	}
	written, _ := h.Events(200, "POST", "/"+draft.ID+"/write", "")
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	h.Ghost("PUT", "/posts/"+written.Post.ID+"/", fmt.Sprintf(`{"posts":[{"updated_at":%q,"status":"scheduled","published_at":%q}]}`, h.UpdatedAt(written.Post.ID), at))

	got := send("/publish-series", "")
	const scheduled = `"problems":[{"field":"post","message":"Its post is scheduled already."}]`
	if got.Status != 202 || !strings.Contains(got.Body, `{"id":"`+draft.ID+`",`+scheduled) || strings.Count(got.Body, scheduled) != 1 || !strings.Contains(got.Body, `"left":0`) {
		t.Errorf("publishing: %v, want the two copies published and the scheduled draft left", got)
	}
	if posts := h.IDs("posts", "title:'Choir "+h.Unique+"'+status:scheduled"); len(posts) != 1 {
		t.Errorf("scheduled posts %v, want one still", posts)
	}
}
