package eventsapi_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The edge is killed at random points of many publishings: there are as many posts as
// events, each with what was last acknowledged. LYCHGATE_TEST_PUBLISHINGS is how many.
func TestKilledAmongPublishings(t *testing.T) {
	publishings := 16
	if n, err := strconv.Atoi(os.Getenv("LYCHGATE_TEST_PUBLISHINGS")); err == nil {
		publishings = n
	}
	ghost, key := ghosttest.Real(t)
	p := edgetest.StartProcess(t, edgetest.EventsConfig("sqlite {{folder}}/store.db", ghost, key, "6000 1m"))
	h := edgetest.NewEvents(t, edgetest.Outside(t, p.Edge), key)

	// ask sends a request until it is answered by somebody who is there.
	ask := func(method, path, body string) edgetest.Response {
		for {
			got, err := h.SendBody(method, "/ghost/lychgate/desk/events"+path, body, "Cookie", h.Owner, "Origin", h.Base, "Content-Type", "application/json")
			if err == nil && got.Status != http.StatusBadGateway {
				return got
			}
			<-time.After(20 * time.Millisecond) // the edge is down: a client's pause before it retries
		}
	}
	const editors = 4
	var mu sync.Mutex
	last := make(map[string]string) // what was last acknowledged of each event
	var all sync.WaitGroup
	for editor := range editors {
		all.Go(func() {
			for n := range publishings / editors {
				name := fmt.Sprintf("Party %d of %d %s", n, editor, h.Unique)
				values := map[string]any{"name": name, "event_date": "2031-05-01", "speaker": "Ada", "description": "First."}
				var made edgetest.Event
				got := ask("POST", "", h.EventBody(values))
				if got.Status != http.StatusCreated {
					t.Errorf("got %v, want status 201", got)
					return
				}
				h.Decode(got.Body, &made)
				if got := ask("POST", "/"+made.ID+"/publish", ""); got.Status != 200 && got.Status != 202 {
					t.Errorf("got %v, want status 200 or 202", got)
				}
				values["description"] = "Second."
				if got := ask("PUT", "/"+made.ID, h.EventBody(values)); got.Status != 200 && got.Status != 202 {
					t.Errorf("got %v, want status 200 or 202", got)
				}
				mu.Lock()
				last[made.ID] = name
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	kills := 0
	for isDone := false; !isDone && kills < publishings/3; {
		select {
		case <-done:
			isDone = true
		case <-time.After(time.Duration(200+rand.IntN(1500)) * time.Millisecond):
			p.Crash()
			kills++
		}
	}
	<-done
	if kills == 0 {
		t.Error("got no kill before the work ended, want at least 1")
	}
	for id, name := range last {
		wait.Until(t, func() string {
			got := ask("GET", "/"+id, "")
			var e edgetest.Event
			h.Decode(got.Body, &e)
			if e.Pending != nil || e.Status != "published" || e.Values["name"] != name || e.Values["description"] != "Second." {
				return got.Body
			}
			return ""
		})
	}
	names, posts := make(map[string]int), 0
	for next := 1; next > 0; { // Ghost 6 gives 100 at most
		var page struct {
			Posts []struct {
				Title, Status, Slug string
				Excerpt             string `json:"custom_excerpt"`
			}
			Meta struct{ Pagination struct{ Next int } }
		}
		h.Decode(h.Ghost("GET", fmt.Sprintf("/posts/?limit=100&page=%d&filter=title:~'%s',slug:~^'event-'", next, h.Unique), ""), &page)
		for _, post := range page.Posts {
			names[post.Title]++
			if post.Status != "published" || post.Excerpt != "Second." || strings.HasPrefix(post.Slug, "event-") {
				t.Errorf(`got %+v, want status "published", excerpt "Second.", a slug without "event-"`, post)
			}
		}
		next, posts = page.Meta.Pagination.Next, posts+len(page.Posts)
	}
	// An event whose making was acknowledged to nobody is a draft, and has no post.
	for _, name := range last {
		if names[name] != 1 {
			t.Errorf("%d posts of %s", names[name], name)
		}
	}
	t.Logf("%d kills, %d events, %d posts", kills, len(last), posts)
}
