package staffdesk_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// ofPosts makes a fault one of writes to posts alone: who is asking, which theme is active
// and what carries a tag is answered.
func ofPosts(f edgetest.Fault) edgetest.Fault {
	return func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/ghost/api/admin/posts/") {
			f(p, w, r)
			return
		}
		p.Ghost.ServeHTTP(w, r)
	}
}

// first makes a fault one of the first requests.
func first(n int, f edgetest.Fault) edgetest.Fault {
	var mu sync.Mutex
	return func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n--
		left := n
		mu.Unlock()
		if left < 0 {
			p.Ghost.ServeHTTP(w, r)
			return
		}
		f(p, w, r)
	}
}

// settled waits until Ghost has all that was chosen.
func settled(h *edgetest.Homepage) []edgetest.Slot {
	h.T.Helper()
	var slots []edgetest.Slot
	wait.Until(h.T, func() string {
		slots = h.Slots()
		if slices.ContainsFunc(slots, func(s edgetest.Slot) bool { return s.Pending }) {
			return fmt.Sprint("pending: ", slots)
		}
		return ""
	})
	return slots
}

// While Ghost does not do what an editor chose, the choice is kept and shown as pending,
// and done as soon as Ghost can. No post loses another tag.
func TestHomepageWhileGhostFails(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "homepage")
	h := edgetest.NewHomepage(t, edgetest.StartEdge(t, nil, edgetest.HomepageConfig(edgetest.SQLiteStore(t), "http://"+p.Address, p.Key)), p.Key)
	posts := []string{h.AddPost("One", 1, "News"), h.AddPost("Two", 2, "News", "Sport")}
	tags := [][]string{{"news"}, {"news", "sport"}}
	h.Change("PUT", "/hero/lead", `{"post":"`+posts[1]+`"}`)
	collision := edgetest.Responding(409, `{"errors":[{"message":"Saving failed! Someone else is editing this post.","context":null,"type":"UpdateCollisionError","code":"UPDATE_COLLISION"}]}`)
	for i, test := range []struct {
		name  string
		fault edgetest.Fault
		want  int // the status
	}{
		{"somebody edits the post at the same moment", ofPosts(first(2, collision)), 200},
		{"somebody edits the post all the time", ofPosts(collision), 202},
		{"an internal error in the middle of a move", ofPosts(first(2, func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 0 && strings.HasSuffix(r.URL.Path, posts[0]+"/") {
				edgetest.Responding(500, `{}`)(p, w, r)
				return
			}
			p.Ghost.ServeHTTP(w, r)
		})), 202},
		{"the integration may not", ofPosts(edgetest.Responding(403, `{"errors":[{"message":"You do not have permission to edit posts","type":"NoPermissionError"}]}`)), 202},
		{"done, and the response lost", ofPosts(edgetest.ApplyAndClose), 202},
		{"done, and a page instead of the response", ofPosts(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
			p.Applied(r).Body.Close()
			edgetest.Responding(502, "<html>Bad gateway</html>")(p, w, r)
		}), 202},
		{"slow", ofPosts(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
			p.Ghost.ServeHTTP(w, r)
		}), 200},
		{"no response", ofPosts(edgetest.Hang), 202},
	} {
		to := i % 2
		p.Begin(test.fault)
		got := h.Ask("PUT", "/hero/lead", `{"post":"`+posts[to]+`"}`)
		if got.Status != test.want {
			t.Errorf("%s: got %v, want status %v", test.name, got, test.want)
		}
		if isPending := strings.Contains(got.Body, `"pending":{"post":"`+posts[to]+`","since":"20`); isPending != (test.want == 202) {
			t.Errorf("%s: got %v, want isPending %v", test.name, got, test.want == 202)
		}
		if site := h.Do("GET", "/ghost/api/admin/site/"); site.Status != 200 {
			t.Errorf("%s: Ghost's admin: %v", test.name, site)
		}
		p.Fix()
		title := []string{"One", "Two"}[to]
		if diff := cmp.Diff([]edgetest.Slot{{Key: "lead", Posts: []string{title}, Total: 1}, {Key: "second"}, {Key: "third"}, {Key: "first"}}, settled(h)); diff != "" {
			t.Errorf("%s: settled (-want +got):\n%s", test.name, diff)
		}
		want := slices.Clone(tags)
		want[to] = append(slices.Clone(want[to]), "hash-lead")
		if diff := cmp.Diff(want, [][]string{h.Tags(posts[0]), h.Tags(posts[1])}); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", test.name, diff)
		}
	}
	p.Begin(ofPosts(collision))
	if got := h.Ask("DELETE", "/hero/lead", ""); got.Status != 202 || !strings.Contains(got.Body, `"pending":{"post":null,"since":"20`) {
		t.Errorf("got %v, want status 202, body with %s", got, `"pending":{"post":null,"since":"20`)
	}
	p.Fix()
	if got := settled(h)[0]; got.Total != 0 {
		t.Errorf("not cleared: %v", got)
	}

	// Anyone who is not known yet is told that Ghost is away, and so is staff who are.
	fresh := h.SignIn(edgetest.GhostOwner)
	p.Down()
	if got := h.Do("GET", "/ghost/lychgate/curation", "Cookie", fresh, "Origin", h.Base); got.Status != 502 {
		t.Errorf("Ghost is away: %v, want 502", got)
	}
	p.Fix()
	if logged := h.Logged(); strings.Contains(logged, h.Owner) || strings.Contains(logged, edgetest.GhostOwner) || strings.Contains(logged, "Two "+h.Unique) {
		t.Errorf("personal data or titles in the log: %s", logged)
	}
}

// While the store is away nothing is chosen, which is said, and Ghost's own admin works.
func TestHomepageWhilePostgresIsAway(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	_, source, w := edgetest.PostgresProxy(t)
	h := edgetest.NewHomepage(t, edgetest.StartEdge(t, nil, edgetest.HomepageConfig(source, ghost, key)), key)
	one := h.AddPost("One", 1)
	h.Change("PUT", "/hero/lead", `{"post":"`+one+`"}`)

	w.Cut()
	if diff := cmp.Diff(exchange.Staff(500, `{"message":"Internal error."}`), h.Ask("DELETE", "/hero/lead", "")); diff != "" {
		t.Errorf("the store is away: response (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"hash-lead"}, h.Tags(one)); diff != "" {
		t.Errorf("h.tags (-want +got):\n%s", diff)
	}
	w.Fix()
	if diff := cmp.Diff(edgetest.Slot{Key: "lead"}, h.Change("DELETE", "/hero/lead", "")); diff != "" {
		t.Errorf("h.change (-want +got):\n%s", diff)
	}
}

// What staff do in Ghost at the same time counts: a post that is gone is not chosen, a tag
// that was renamed is found as long as it has its slug, and many posts that carry a tag are
// all relieved of it.
func TestHomepageBesideStaff(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	h := edgetest.NewHomepage(t, edgetest.StartEdge(t, nil, edgetest.HomepageConfig(edgetest.SQLiteStore(t), ghost, key)), key)
	one, two := h.AddPost("One", 1), h.AddPost("Two", 2)
	h.Change("PUT", "/hero/lead", `{"post":"`+one+`"}`)

	tag := h.IDs("tags", "slug:hash-lead-"+h.Unique)[0]
	h.Ghost("PUT", "/tags/"+tag+"/", `{"tags":[{"id":"`+tag+`","name":"#Top `+h.Unique+`"}]}`)
	if diff := cmp.Diff(edgetest.Slot{Key: "lead", Posts: []string{"One"}, Total: 1}, h.Slots()[0]); diff != "" {
		t.Errorf("a renamed tag: slot (-want +got):\n%s", diff)
	}
	h.Ghost("PUT", "/tags/"+tag+"/", `{"tags":[{"id":"`+tag+`","slug":"hash-second-`+h.Unique+`"}]}`)
	if diff := cmp.Diff([]edgetest.Slot{{Key: "lead"}, {Key: "second", Posts: []string{"One"}, Total: 1}}, h.Slots()[:2]); diff != "" {
		t.Errorf("a tag with another slug: slots (-want +got):\n%s", diff)
	}
	h.Change("PUT", "/hero/lead", `{"post":"`+two+`"}`)
	h.Ghost("DELETE", "/tags/"+tag+"/", "")
	if diff := cmp.Diff([]edgetest.Slot{{Key: "lead", Posts: []string{"Two"}, Total: 1}, {Key: "second"}}, h.Slots()[:2]); diff != "" {
		t.Errorf("a deleted tag: slots (-want +got):\n%s", diff)
	}

	h.Ghost("DELETE", "/posts/"+two+"/", "")
	if got := h.Ask("PUT", "/hero/second", `{"post":"`+two+`"}`); got.Status != 404 {
		t.Errorf("got %v, want status 404", got)
	}
	if diff := cmp.Diff([]edgetest.Slot{{Key: "lead"}, {Key: "second"}}, settled(h)[:2]); diff != "" {
		t.Errorf("a deleted post: slots (-want +got):\n%s", diff)
	}

	for n := range 40 {
		h.AddPost(fmt.Sprint("Many ", n), 3, "#lead-"+h.Unique, "News")
	}
	if got := h.Slots()[0]; got.Total != 40 || len(got.Posts) != 10 {
		t.Errorf("of forty: %v", got)
	}
	if got := h.Ask("PUT", "/hero/lead", `{"post":"`+one+`"}`); got.Status != 200 && got.Status != 202 {
		t.Errorf("got %v, want status 200 or 202", got)
	}
	if diff := cmp.Diff(edgetest.Slot{Key: "lead", Posts: []string{"One"}, Total: 1}, settled(h)[0]); diff != "" {
		t.Errorf("h.settled()[0] (-want +got):\n%s", diff)
	}
	if got := h.IDs("posts", "title:~'"+h.Unique+"'+tag:news"); len(got) != 40 {
		t.Errorf("%d of forty have their other tag", len(got))
	}
}

// The edge is killed at random points of many moves: each slot has exactly the post that
// was last acknowledged, and no post lost another tag.
func TestKilledAmongMoves(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	p := edgetest.StartProcess(t, edgetest.HomepageConfig("sqlite {{folder}}/store.db", ghost, key))
	h := edgetest.NewHomepage(t, edgetest.Outside(t, p.Edge), key)
	titles := []string{"One", "Two", "Three", "Four"}
	var posts []string
	for i, title := range titles {
		posts = append(posts, h.AddPost(title, i, "News"))
	}

	const moves, crashes = 15, 5
	// Each editor chooses for a slot of their own, again where no response came, or another.
	last := make([]string, 2)
	var acknowledged atomic.Int64
	var editors sync.WaitGroup
	for i, path := range []string{"/hero/lead", "/hero/second"} {
		editors.Go(func() {
			for done := 0; done < moves; {
				to := rand.IntN(len(posts))
				response, err := h.SendBody("PUT", "/ghost/lychgate/curation"+path, `{"post":"`+posts[to]+`"}`, "Cookie", h.Owner, "Origin", h.Base)
				switch {
				case err != nil || response.Status == http.StatusBadGateway: // the edge is down
					<-time.After(20 * time.Millisecond) // an editor's pause before they retry
				case response.Status == http.StatusOK || response.Status == http.StatusAccepted:
					last[i] = titles[to]
					done++
					acknowledged.Add(1)
				default:
					t.Errorf("%s: got %v, want status 200, 202 or 502", path, response)
					return
				}
			}
		})
	}
	for crash := range crashes { // each among the moves, however fast they are
		at := int64(len(last) * moves * (crash + 1) / (crashes + 1))
		wait.Until(t, func() string {
			if done := acknowledged.Load(); done < at {
				return fmt.Sprintf("%d moves are done, want %d before crash %d", done, at, crash+1)
			}
			return ""
		})
		<-time.After(time.Duration(rand.IntN(100)) * time.Millisecond) // somewhere in the next move
		p.Crash()
	}
	editors.Wait()
	if diff := cmp.Diff([]edgetest.Slot{
		{Key: "lead", Posts: []string{last[0]}, Total: 1}, {Key: "second", Posts: []string{last[1]}, Total: 1}, {Key: "third"}, {Key: "first"},
	}, settled(h)); diff != "" {
		t.Errorf("h.settled (-want +got):\n%s", diff)
	}
	for i, title := range titles {
		want := []string{"news"}
		for slot, tag := range []string{"hash-lead", "hash-second"} {
			if last[slot] == title {
				want = append(want, tag)
			}
		}
		got := h.Tags(posts[i])
		slices.Sort(got[1:])
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: tags (-want +got):\n%s", title, diff)
		}
	}
}
