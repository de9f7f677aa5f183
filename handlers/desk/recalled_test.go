package desk_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// An editor whom Ghost knew a moment ago publishes an event while Ghost does not answer: it is
// kept, the page says so, and Ghost has it later. What is not brought to Ghost waits for it.
func TestPublishWhileGhostHangs(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Party", "menu": "Cake"})
	h.get("events?event="+e.ID, "Editor")
	h.Ghost.Break(desktest.ErrGone)

	const unknown = "Ghost could not be asked who you are. Try again."
	if page := h.post("events", "Editor", "do", "delete", "event", e.ID, "revision", revision(e.Revision)); page.Status != 502 || page.Text != unknown {
		t.Errorf("deleting: got %d %q, want 502 %q", page.Status, page.Text, unknown)
	}
	form := []string{"event", e.ID, "revision", revision(e.Revision), "type", "party", "was", "party", "kept", "{}", "f.name", "Ball", "f.menu", "Soup"}
	if page := h.post("events", "Editor", append(form, "do", "save")...); page.Status != 502 || page.Text != unknown {
		t.Errorf("saving a draft: got %d %q, want 502 %q", page.Status, page.Text, unknown)
	}
	if page := h.post("events", "Owner", append(form, "do", "publish")...); page.Status != 502 || page.Text != unknown {
		t.Errorf("publishing by somebody whom Ghost was never asked about: got %d %q, want 502 %q", page.Status, page.Text, unknown)
	}

	page := h.post("events", "Editor", append(form, "do", "publish")...)
	for _, want := range []string{
		"Ghost does not answer. What you did is kept here, and sent to Ghost as soon as it responds.", "Kept here, and sent to the site as soon as it responds", "Ball",
	} {
		if page.Status != 200 || !strings.Contains(page.Text, want) {
			t.Errorf("publishing: got %d %q, want 200 and %q in it", page.Status, page.Text, want)
		}
	}
	if now := h.event(e.ID); now.Status != events.Published || now.Pending == nil {
		t.Errorf("the event is %s, pending: %+v; want it published and pending", now.Status, now.Pending)
	}
	h.Ghost.Fix()
	wait.Until(t, func() string {
		h.Work.Wake("daily")
		if now := h.event(e.ID); now.Pending != nil || now.Post.ID == "" {
			return "the event is not at Ghost"
		}
		return ""
	})
	if diff := cmp.Diff("Ball", h.event(e.ID).Post.Title); diff != "" {
		t.Errorf("the post (-want +got):\n%s", diff)
	}
}

// An editor whom Ghost knew a moment ago chooses a post while Ghost does not answer.
func TestChooseWhileGhostHangs(t *testing.T) {
	h := newsroom(t)
	h.get("curation?slot=top/lead", "Editor")
	h.Ghost.Break(desktest.ErrGone)
	page := h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "3")
	if want := "Lead story : your choice is kept, and sent to Ghost as soon as it responds. All slots"; page.Status != 200 || page.Text != want {
		t.Errorf("got %d %q, want 200 %q", page.Status, page.Text, want)
	}
	// Readers see this tag, and Ghost does not say from how many posts the choice would take it.
	page = h.post("curation", "Editor", "theme", "nightly", "slot", "more/news", "post", "3")
	if want := "Ghost does not say what the homepage holds. Try again in a moment."; page.Status != 502 || page.Text != want {
		t.Errorf("a tag that readers see: got %d %q, want 502 %q", page.Status, page.Text, want)
	}
	if page := h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "with", "top/second"); page.Status != 502 {
		t.Errorf("slots that change places: got %d, want 502", page.Status)
	}
	h.Ghost.Fix()
	wait.Until(t, func() string {
		h.Work.Wake("daily")
		if diff := cmp.Diff([]string{"3"}, h.Ghost.PostsByTag()["#lead"]); diff != "" {
			return diff
		}
		return ""
	})
}
