package curation

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// A tag that readers see is taken from no crowd of posts, unless that is meant.
func TestPublicTag(t *testing.T) {
	w := newPlatform(map[string][]string{"1": {"featured"}, "2": {"featured"}, "3": nil})
	h := &Homepage{Site: "daily", Posts: w, Curator: start(t, dbtest.SQLite(t), w)}
	slot := manifest.Slot{Key: "lead", Label: "Lead", Tag: "featured"}
	var many *ManyError
	for _, post := range []string{"3", ""} {
		if err := h.Fill(t.Context(), slot, post, false); !errors.As(err, &many) || many.Total != 2 {
			t.Errorf("Fill with post %q: got %v, want a *ManyError of 2 posts", post, err)
		}
	}
	if diff := cmp.Diff([]string{"1", "2"}, w.PostsByTag()["featured"]); diff != "" {
		t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
	}
	if err := h.Fill(t.Context(), slot, "3", true); err != nil {
		t.Errorf("h.Fill: %v", err)
	}
	if diff := cmp.Diff([]string{"3"}, w.PostsByTag()["featured"]); diff != "" {
		t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
	}
}

// A platform that does not say how many posts carry a tag loses none of them a tag that
// readers see: such a choice is not kept. One of an internal tag is.
func TestPublicTagUnknown(t *testing.T) {
	for tag, want := range map[string]struct {
		err  error
		kept []string
	}{
		"featured":      {ErrPlatform, nil},
		"hash-featured": {ErrPending, []string{"hash-featured: 3"}},
		" #featured":    {ErrPending, []string{" #featured: 3"}},
	} {
		w := newPlatform(map[string][]string{"1": {tag}, "2": {tag}, "3": nil})
		w.BreakCalls(platformtest.ErrDown, "tagged")
		h := &Homepage{Site: "daily", Posts: w, Curator: start(t, dbtest.SQLite(t), w)}
		if err := h.Fill(t.Context(), manifest.Slot{Key: "lead", Label: "Lead", Tag: tag}, "3", false); !errors.Is(err, want.err) {
			t.Errorf("Fill of %q: got %v, want %v", tag, err, want.err)
		}
		if diff := cmp.Diff(want.kept, pending(t, h.Curator)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tag, diff)
		}
	}
}

// What no platform has is refused at once, also while none answers, and with either database.
func TestImpossibleChoicesAreRejectedAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		w := newPlatform(map[string][]string{"1": nil})
		w.Break(platformtest.ErrDown)
		c := start(t, db, w)
		for _, post := range []string{"a\x00b", "\xff", strings.Repeat("1", maxKey+1)} {
			if err := c.Move(t.Context(), "daily", Choice{"#hero", post}); !errors.Is(err, platform.ErrNoPost) {
				t.Errorf("Move to post %.10q: got %v, want %v", post, err, platform.ErrNoPost)
			}
		}
		var tag [maxKey * 3]byte
		for i := range tag {
			tag[i] = byte('a' + rand.IntN(26)) // which no index compresses
		}
		var refusal *platform.Refusal
		if err := c.Move(t.Context(), "daily", Choice{string(tag[:]), "1"}); !errors.As(err, &refusal) {
			t.Errorf("Move of a tag with %d bytes: %v, want a *platform.Refusal", len(tag), err)
		}
		if left := pending(t, c); left != nil {
			t.Errorf("pending: %d", len(left))
		}
	})
}

// A manifest with thousands of slots makes no page of tens of thousands of posts.
func TestManySlots(t *testing.T) {
	posts := make(map[string][]string)
	for i := range 2 * MaxShown {
		posts[strconv.Itoa(i)] = nil
	}
	shown := make(map[int]int) // posts of a slot, by the number of slots
	for _, n := range []int{1, 50, 100, 500, 5000} {
		slots := make([]manifest.Slot, n)
		for i := range slots {
			slots[i] = manifest.Slot{Tag: "#hero"}
		}
		for id := range posts {
			posts[id] = []string{"#hero"}
		}
		w := newPlatform(posts)
		h := &Homepage{Site: "daily", Posts: w, Curator: start(t, dbtest.SQLite(t), w)}
		list, err := h.Show(t.Context(), slots)
		if err != nil || len(list) != n || list[0].Total != 2*MaxShown {
			t.Fatalf("Show: got %d slots, %v, want %d of which the first has %d posts in all", len(list), err, n, 2*MaxShown)
		}
		shown[n] = len(list[0].Posts)
	}
	if diff := cmp.Diff(map[int]int{1: 10, 50: 10, 100: 10, 500: 2, 5000: 1}, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}
