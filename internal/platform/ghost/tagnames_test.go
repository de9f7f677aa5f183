package ghost

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// What only Ghost can make a slug of is looked for by its name.
func TestTagSlug(t *testing.T) {
	got := make(map[string]string)
	for _, tag := range []string{"#hero", "hash-hero", "#Hero", " #hero ", "Featured", "featured-2", "#Top Story", "Café", "#", "a_b", ""} {
		got[tag] = tagSlug(tag)
	}
	want := map[string]string{
		"#hero": "hash-hero", "hash-hero": "hash-hero", "#Hero": "hash-hero", " #hero ": "hash-hero", "Featured": "featured",
		"featured-2": "featured-2", "#Top Story": "", "Café": "", "#": "", "a_b": "", "": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

// A tag is found by hash- as by #, also where only Ghost can make a slug of its name. It is made once.
func TestInternalTagIsMadeOnce(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	for _, name := range []string{"lead_story", "Héro", "x y", "q!", "plain"} {
		name += unique
		for _, names := range [][2]string{{"hash-" + name, "#" + name}, {"Hash-b" + name, "#b" + name}, {"#c" + name, " hash-c" + name}} {
			id := addPost(t, c, map[string]any{"title": "tagged " + unique, "status": "published"})
			for _, name := range names {
				for range 2 {
					if err := c.Tag(t.Context(), id, name); err != nil {
						t.Fatalf("c.Tag with %s: %v", name, err)
					}
				}
				found, err := c.Published(t.Context(), platform.PostSearch{Tag: name, Most: 10})
				if err != nil || len(found) != 1 || found[0].ID != id {
					t.Errorf("Published with %s: %+v, %v, want the post", name, found, err)
				}
			}
			carried, err := c.Tagged(t.Context(), names[:], 10)
			if err != nil || carried[names[0]].Total != 1 || carried[names[1]].Total != 1 {
				t.Errorf("Tagged: %+v, %v, want the post with both of %q", carried, err, names)
			}
			if tags := slugsOf(t, c, id); len(tags) != 1 {
				t.Errorf("the post has the tags %q, want one for %q", tags, names)
			}
			if err := c.Untag(t.Context(), id, names[0]); err != nil {
				t.Errorf("c.Untag: %v", err)
			}
			if tags := slugsOf(t, c, id); len(tags) != 0 {
				t.Errorf("the post has the tags %q, want none", tags)
			}
		}
	}
}
