package ghost

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// The alt text of a picture is the post's own: it is set and changed with the rest, what staff write
// in Ghost's editor is read, and it is taken away.
func TestRealAlt(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	p, err := c.AddPost(t.Context(), slug, true, func(p platform.EventPost) platform.EventPost {
		p.Title, p.Picture, p.Alt = "Party", "https://example.com/a.png", "Three people at a gate"
		return p
	}, func(string) error { return nil })
	if err != nil {
		t.Fatalf("c.AddPost: %v", err)
	}
	read := func(want string) {
		t.Helper()
		found, err := c.EventPosts(t.Context(), []string{p.ID})
		if err != nil {
			t.Fatalf("c.EventPosts: %v", err)
		}
		if diff := cmp.Diff(want, found[p.ID].Alt); diff != "" {
			t.Errorf("the alt text (-want +got):\n%s", diff)
		}
	}
	read("Three people at a gate")
	edit(t, c, p.ID, map[string]any{"feature_image_alt": "Four people"}, nil)
	read("Four people")
	if p, err = c.ChangePost(t.Context(), p.ID, func(p platform.EventPost) platform.EventPost {
		p.Alt = ""
		return p
	}); err != nil || p.Alt != "" {
		t.Errorf("c.ChangePost: got %q, %v; want no alt text", p.Alt, err)
	}
	read("")
}
