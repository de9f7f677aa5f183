package curation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// A move whose time is up is tried later, and not at once and for ever.
func TestTimeIsUp(t *testing.T) {
	w := newPlatform(map[string][]string{"1": {"#hero"}, "2": nil})
	c := start(t, dbtest.SQLite(t), w)
	m := keep(t, c, "daily", "#hero", "2")
	ctx, cancel := context.WithCancel(t.Context())
	w.Fail(func(call, _ string) error {
		if call != "tag" {
			return nil
		}
		cancel()
		return context.Canceled
	})
	if _, err := c.work.Sync(ctx, "daily", Kind, m.identity); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	moves, err := c.List(t.Context(), "daily")
	if err != nil || len(moves) != 1 || moves[0].Tries != 1 {
		t.Errorf("List: got %+v, %v, want 1 move that was tried once", moves, err)
	}
}

// A tag that more posts carry than an attempt takes it from is said as it is, and no failure of the
// platform: the next attempt goes on.
func TestVeryManyPosts(t *testing.T) {
	lineartest.Volume(t)
	for name, test := range map[string]struct {
		carriers, lasts int // how many changes an attempt has time for
		taken           int
	}{
		"more than an attempt reads":        {maxRounds*maxCarriers + 1, maxRounds*maxCarriers + 1, maxRounds * maxCarriers},
		"more than an attempt has time for": {10, 7, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				posts := make(map[string][]string)
				for n := range test.carriers {
					posts[fmt.Sprintf("%05d", n)] = []string{"#hero"}
				}
				w := newPlatform(posts)
				n := 0
				w.Fail(func(call, _ string) error {
					if call != "untag" {
						return nil
					}
					if n++; n == test.lasts {
						time.Sleep(2 * time.Second)
						return context.DeadlineExceeded
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := apply(ctx, w, moveOf("daily", "#hero", ""))
				want := fmt.Sprintf("Very many posts carry the tag. It was taken from %d of them, and the next attempt goes on.", test.taken)
				if _, isOther := errors.AsType[*otherError](err); !isOther || reasonOf(err) != want {
					t.Errorf("got %v, want %s", err, want)
				}
			})
		})
	}
}

// A platform that fails at any call keeps nobody from what was chosen: it is finished when
// it answers again.
func TestPlatformFails(t *testing.T) {
	for _, failing := range []string{"post", "tagged", "tag", "untag"} {
		t.Run(failing, func(t *testing.T) {
			w := newPlatform(map[string][]string{"1": {"#hero"}, "2": nil})
			w.BreakCalls(platformtest.ErrDown, failing)
			db := dbtest.SQLite(t)
			c := start(t, db, w)
			err := c.Move(t.Context(), "daily", Choice{"#hero", "2"})
			if failing == "post" { // which was only asked whether it is there
				if err != nil || len(pending(t, c)) != 0 {
					t.Errorf("%v, %v pending", err, pending(t, c))
				}
				return
			}
			if !errors.Is(err, ErrPending) {
				t.Fatalf("c.Move: %v, want %v", err, ErrPending)
			}
			moves, err := c.List(t.Context(), "daily")
			if err != nil || len(moves) != 1 || moves[0].Tries != 1 || moves[0].Problem != platform.ReasonUnanswered {
				t.Fatalf("List: got %+v, %v, want 1 move that was tried once, with the problem %q", moves, err, platform.ReasonUnanswered)
			}
			w.Fix()
			syncAll(t, c)
			if diff := cmp.Diff([]string{"2"}, w.PostsByTag()["#hero"]); diff != "" {
				t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
			}
			if left := pending(t, c); left != nil {
				t.Errorf("pending: %v", left)
			}
		})
	}
}

// blind is a platform that gives a post a tag, by which it does not find the post.
type blind struct {
	platform.PostHost
	tags int
}

func (*blind) Tagged(context.Context, []string, int) (map[string]platform.Tagged, error) {
	return nil, nil
}

func (b *blind) Tag(context.Context, string, string) error {
	b.tags++
	return nil
}

// A platform that does not find what it has tagged is not flooded with tags.
func TestTagThatIsNotFound(t *testing.T) {
	b := &blind{PostHost: newPlatform(map[string][]string{"1": nil})}
	err := apply(t.Context(), b, moveOf("daily", "#hero", "1"))
	if _, isOther := errors.AsType[*otherError](err); !isOther || b.tags != maxTagged {
		t.Errorf("apply: %v, after %d tags, want a reason after %d", err, b.tags, maxTagged)
	}
}
