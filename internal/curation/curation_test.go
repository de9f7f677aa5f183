package curation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// newPlatform publishes each post but the one called draft. The post with the greatest ID is the
// newest. The values are tags.
func newPlatform(posts map[string][]string) *platformtest.Platform {
	p := platformtest.New()
	p.Tags = posts
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(posts))) {
		post := platform.Post{ID: id, Title: "Post " + id, Status: platform.Published}
		if id == "draft" {
			post.Status = platform.Draft
		}
		p.Posts = append(p.Posts, post)
	}
	return p
}

// start serves the site daily until the test ends.
func start(t *testing.T, db *database.DB, w *platformtest.Platform) *Curator {
	t.Helper()
	c := newCurator(t, db, map[string]platform.PostHost{"daily": w})
	running(t, c)
	return c
}

// The curator's queue does not run.
func newCurator(t *testing.T, db *database.DB, sites map[string]platform.PostHost) *Curator {
	t.Helper()
	store, err := NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	queue, err := work.New(t.Context(), db, zap.NewNop(), nil)
	if err != nil {
		t.Fatalf("work.New: %v", err)
	}
	return New(store, queue, func(site string) platform.PostHost { return sites[site] }, zap.NewNop())
}

// running ends what a curator has begun when the test ends.
func running(t *testing.T, c *Curator) {
	t.Cleanup(func() { end(c) })
}

func end(c *Curator) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.work.Run(ctx)
}

// keep keeps a move that nobody makes.
func keep(t *testing.T, c *Curator, site, tag, post string) Move {
	t.Helper()
	m := moveOf(site, tag, post)
	if err := c.want(t.Context(), []wanted{{Move: m}}, c.work.Enqueue); err != nil {
		t.Fatalf("c.want: %v", err)
	}
	return m
}

// pending lists moves as "tag: post".
func pending(t *testing.T, c *Curator) (list []string) {
	t.Helper()
	moves, err := c.List(t.Context(), "daily")
	if err != nil {
		t.Fatalf("c.List: %v", err)
	}
	for _, m := range moves {
		list = append(list, m.Tag+": "+m.Post)
	}
	return list
}

// A slot holds the post that was chosen, whatever carried its tag before; other tags stay;
// and the homepage is never without.
func TestSlotsHoldTheChosenPost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		for name, test := range map[string]struct {
			posts map[string][]string
			post  string
			want  []string
			seen  []int
		}{
			"the first":      {map[string][]string{"1": {"news"}, "2": nil}, "1", []string{"1"}, []int{1}},
			"another":        {map[string][]string{"1": {"news", "#hero"}, "2": {"#x"}}, "2", []string{"2"}, []int{2, 1}},
			"the same":       {map[string][]string{"1": {"#hero", "news"}}, "1", []string{"1"}, nil},
			"of several":     {map[string][]string{"1": {"#hero"}, "2": {"#hero"}, "3": {"#hero"}}, "2", []string{"2"}, []int{2, 1}},
			"beside several": {map[string][]string{"1": {"#hero"}, "2": {"#hero"}, "3": nil}, "3", []string{"3"}, []int{3, 2, 1}},
			"none":           {map[string][]string{"1": {"#hero", "a"}, "2": {"#hero"}}, "", nil, []int{1, 0}},
			"none of none":   {map[string][]string{"1": {"a"}}, "", nil, nil},
		} {
			t.Run(name, func(t *testing.T) {
				others := make(map[string][]string)
				for id, tags := range test.posts {
					others[id] = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return tag == "#hero" })
				}
				w := newPlatform(test.posts)
				c := start(t, db, w)
				if err := c.Move(t.Context(), "daily", Choice{"#hero", test.post}); err != nil {
					t.Fatalf("c.Move: %v", err)
				}
				if diff := cmp.Diff(test.want, w.PostsByTag()["#hero"]); diff != "" {
					t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.seen, w.Carriers["#hero"]); diff != "" {
					t.Errorf("the numbers of posts with the tag, one after the other: %s", diff)
				}
				left := make(map[string][]string)
				for id, tags := range w.Tags {
					left[id] = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return tag == "#hero" })
				}
				if diff := cmp.Diff(others, left, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("other tags: %s", diff)
				}
				if left := pending(t, c); left != nil {
					t.Errorf("still pending: %v", left)
				}
			})
		}
	})
}

// A choice that cannot be made changes nothing and is not kept.
func TestRefusedChoicesChangeNothing(t *testing.T) {
	refusal := &platform.Refusal{Reason: "No."}
	ada := history.Editor{ID: "1", Name: "Ada"}
	chose := history.Entry{Editor: ada, Did: "filled", About: "Post 2"}
	for name, test := range map[string]struct {
		post    string
		fault   error // of tagging it
		want    error
		history []history.Entry
	}{
		"a post that is not there":     {"9", nil, platform.ErrNoPost, nil},
		"a post that is deleted then":  {"2", platform.ErrNoPost, platform.ErrNoPost, []history.Entry{{Did: "refused", About: "The post is not there any more."}, chose}},
		"a post that is not published": {"draft", nil, errUnpublished, nil},
		"a post that is refused":       {"2", refusal, refusal, []history.Entry{{Did: "refused", About: "No."}, chose}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPlatform(map[string][]string{"1": {"#hero"}, "2": nil, "draft": nil})
			w.BreakCalls(test.fault, "tag")
			c := start(t, dbtest.SQLite(t), w)
			if err := c.By(ada).Move(t.Context(), "daily", Choice{"#hero", test.post}); !errors.Is(err, test.want) || errors.Is(err, ErrPending) {
				t.Errorf("Move: got %v, want %v and not ErrPending", err, test.want)
			}
			if diff := cmp.Diff([]string{"1"}, w.PostsByTag()["#hero"]); diff != "" {
				t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
			}
			if left := pending(t, c); left != nil {
				t.Errorf("pending: %v", left)
			}
			got, err := c.History(t.Context(), "daily")
			if diff := cmp.Diff(test.history, got["hash-hero"], cmpopts.IgnoreFields(history.Entry{}, "At")); diff != "" || err != nil {
				t.Errorf("the history: error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A post that was unpublished takes no slot from one that readers see, though nobody could ask for it
// when it was chosen.
func TestChosenUnasked(t *testing.T) {
	w := newPlatform(map[string][]string{"1": {"#hero"}, "draft": nil})
	c := start(t, dbtest.SQLite(t), w)
	ctx := work.WithAsker(t.Context(), work.Asker{Name: "Ada", IsUnanswered: true})
	if err := c.Move(ctx, "daily", Choice{"#hero", "draft"}); !errors.Is(err, ErrPending) {
		t.Fatalf("got %v, want %v", err, ErrPending)
	}
	syncAll(t, c)
	if diff := cmp.Diff([]string{"1"}, w.PostsByTag()["#hero"]); diff != "" {
		t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
	}
	if left := pending(t, c); left != nil {
		t.Errorf("pending: %v, want nothing", left)
	}
}

// syncAll has all moves made that are kept.
func syncAll(t *testing.T, c *Curator) {
	t.Helper()
	moves, err := c.List(t.Context(), "daily")
	if err != nil {
		t.Fatalf("c.List: %v", err)
	}
	for _, m := range moves {
		if _, err := c.work.Sync(t.Context(), "daily", Kind, m.identity); err != nil {
			t.Errorf("c.work.Sync: %v", err)
		}
	}
}

// expire has all leases run out.
func expire(t *testing.T, db *database.DB) {
	t.Helper()
	dbtest.Exec(t, db, "UPDATE work SET leased_until = 0")
}

var errDead = errors.New("the process has ended")

// A process that ends after any of its calls leaves nothing half done: another finishes
// it, once the lease has run out.
func TestKilledProcessesLeaveNothingHalfDone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		finished := false
		for calls := 1; !finished; calls++ {
			w := newPlatform(map[string][]string{"1": {"#hero", "a"}, "2": {"b"}, "3": {"#hero"}})
			killed := start(t, db, w)
			made := 0
			w.Fail(func(string, string) error {
				if made++; made <= calls {
					return nil
				}
				// Nothing gets through any more: the lease is no longer this process's.
				if _, err := db.Write.ExecContext(t.Context(), "UPDATE work SET holder = 'killed'"); err != nil {
					t.Errorf("db.Write.ExecContext: %v", err)
				}
				return errDead
			})
			finished = killed.Move(t.Context(), "daily", Choice{"#hero", "2"}) == nil
			w.Fix()

			expire(t, db)
			other := start(t, db, w)
			syncAll(t, other)
			want := map[string][]string{"1": {"a"}, "2": {"b", "#hero"}, "3": {}}
			if diff := cmp.Diff(want, w.Tags); diff != "" {
				t.Errorf("ended after %d calls: %s", calls, diff)
			}
			if left := pending(t, other); left != nil {
				t.Errorf("ended after %d calls, pending: %v", calls, left)
			}
		}
	})
}

// Of several who choose at the same moment in several processes, what was acknowledged
// last is what the slot holds, and each slot holds one post.
func TestAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		posts := make(map[string][]string)
		for i := range 10 {
			posts[strconv.Itoa(i)] = []string{"news"}
		}
		w := newPlatform(posts)
		curators := []*Curator{start(t, db, w), start(t, db, w)}
		var acknowledged [10]struct{ began, ended time.Time }
		var editors sync.WaitGroup
		for i := range acknowledged {
			editors.Go(func() {
				began := time.Now()
				err := curators[i%2].Move(t.Context(), "daily", Choice{"#hero", strconv.Itoa(i)})
				switch {
				case err == nil:
					acknowledged[i].began, acknowledged[i].ended = began, time.Now()
				case !errors.Is(err, ErrReplaced):
					t.Errorf("Move: %v, want no error or ErrReplaced", err)
				}
			})
		}
		editors.Wait()
		held := w.PostsByTag()["#hero"]
		if len(held) != 1 {
			t.Fatalf("the slot holds the posts %q, want one", held)
		}
		i, _ := strconv.Atoi(held[0])
		last := acknowledged[i]
		if last.ended.IsZero() {
			t.Errorf("the slot holds post %d, want one that was acknowledged", i)
		}
		for j, other := range acknowledged {
			if other.began.After(last.ended) {
				t.Errorf("the slot holds post %d, want post %d, which was chosen after that was acknowledged", i, j)
			}
		}
		for id, tags := range w.Tags {
			if !slices.Contains(tags, "news") {
				t.Errorf("post %s has %v", id, tags)
			}
		}
		if left := pending(t, curators[0]); left != nil {
			t.Errorf("pending: %v", left)
		}
	})
}

// An editor who chooses a post twice, as with a double click, is told both times that it is there.
func TestPostsMayBeChosenTwice(t *testing.T) {
	db := dbtest.SQLite(t)
	w := newPlatform(map[string][]string{"1": nil})
	_, release := w.Hold("tagged")
	c := newCurator(t, db, map[string]platform.PostHost{"daily": w})
	running(t, c)
	var editors sync.WaitGroup
	choose := func() {
		editors.Go(func() {
			if err := c.Move(t.Context(), "daily", Choice{"#hero", "1"}); err != nil {
				t.Errorf("c.Move: %v", err)
			}
		})
	}
	revision := func() (n int64) {
		moves, err := c.List(t.Context(), "daily")
		if err != nil || len(moves) == 0 {
			return 0
		}
		return moves[0].revision
	}
	choose()
	wait.Until(t, func() string {
		if revision() == 0 {
			return "the first choice is not kept"
		}
		return ""
	})
	first := revision()
	choose()
	wait.Until(t, func() string {
		if revision() == first {
			return "the second choice is not kept"
		}
		return ""
	})
	release()
	editors.Wait()
	if diff := cmp.Diff([]string{"1"}, w.PostsByTag()["#hero"]); diff != "" {
		t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
	}
}

// Run finishes what another process left, and leaves alone what this one does not serve.
func TestRunFinishesWhatOthersLeft(t *testing.T) {
	db := dbtest.SQLite(t)
	w := newPlatform(map[string][]string{"1": nil})
	c := start(t, db, w)
	for _, site := range []string{"daily", "weekly"} {
		keep(t, c, site, "#hero", "1")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.work.Run(ctx) })
	wait.Until(t, func() string {
		if left := pending(t, c); left != nil {
			return fmt.Sprint(left)
		}
		return ""
	})
	cancel()
	running.Wait()
	other, err := c.List(t.Context(), "weekly")
	if err != nil || len(other) != 1 {
		t.Errorf("of a site that is served elsewhere: %+v, %v", other, err)
	}
	if diff := cmp.Diff([]string{"1"}, w.PostsByTag()["#hero"]); diff != "" {
		t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
	}
}

// A move for which there is no room, or that is asked for while the queue ends, as at a reload,
// is kept and waits for the next one.
func TestMoveWithoutRoom(t *testing.T) {
	w := newPlatform(map[string][]string{"1": nil})
	db := dbtest.SQLite(t)
	c := start(t, db, w)
	end(c)
	if err := c.Move(t.Context(), "daily", Choice{"#hero", "1"}); !errors.Is(err, ErrPending) {
		t.Errorf("%v, want %v", err, ErrPending)
	}
	if diff := cmp.Diff([]string{"#hero: 1"}, pending(t, c)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	syncAll(t, start(t, db, w))
	if diff := cmp.Diff([]string{"1"}, w.PostsByTag()["#hero"]); diff != "" {
		t.Errorf("made by the next one, want -, got +: %s", diff)
	}
}

// Nothing is left of a site that is gone, and another keeps what is its own.
func TestRemovedSitesLeaveNoChoices(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		c := newCurator(t, db, nil)
		for _, site := range []string{"daily", "weekly"} {
			keep(t, c, site, "#hero", "1")
		}
		if err := errors.Join(Schema.Forget(t.Context(), db, "daily"), work.Schema.Forget(t.Context(), db, "daily")); err != nil {
			t.Fatalf("errors.Join: %v", err)
		}
		for site, want := range map[string]int{"daily": 0, "weekly": 1} {
			moves, err := c.List(t.Context(), site)
			_, counts, countErr := c.work.Pending(t.Context(), site, 10)
			if err := errors.Join(err, countErr); err != nil || len(moves) != want || counts[Kind] != want {
				t.Errorf("%s: %d moves and %d tasks are left, want %d; %v", site, len(moves), counts[Kind], want, err)
			}
		}
	})
}
