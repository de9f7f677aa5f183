package desk_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// Ghost, or the store, does not answer: the page says so, and that is all that happens.
func TestWhatIsAway(t *testing.T) {
	const store = "Lychgate's store does not answer, so there is nothing to show. Nothing is lost, and the site goes on working. Try again in a moment."
	const away = "Not available now"
	forms := map[string]string{
		"themes": "refresh=nightly", "integrations": "do=add&name=crm", "sync": "", "curation": "theme=nightly&slot=top/lead&post=3",
	}
	refresh := func(h *harness) {
		h.Themes.Repositories["nightly"] = desktest.Source("manifest_version: 1\n"+curated, nil)
	}
	for name, test := range map[string]struct {
		spoil  func(h *harness)
		status int
		says   map[string]string // by page; "" for one that is shown
	}{
		"a store that cannot be opened": {
			func(h *harness) { h.Away = desktest.ErrGone }, 503,
			map[string]string{"themes": store, "integrations": store, "sync": store, "curation": store},
		},
		"a store that goes away": {
			func(h *harness) { h.CloseStore(); h.Outbox.Err = desktest.ErrGone }, 503,
			map[string]string{"themes": store, "integrations": store, "sync": store, "curation": store},
		},
		"a Ghost that does not say who asks": {
			func(h *harness) { h.Ghost.Break(desktest.ErrGone) }, 502,
			map[string]string{
				"themes": "Ghost could not be asked who you are. Try again.", "integrations": "Ghost could not be asked who you are. Try again.",
				"sync": "Ghost could not be asked who you are. Try again.", "curation": "Ghost could not be asked who you are. Try again.",
			},
		},
		"a Ghost that does not say its themes": {
			func(h *harness) { h.Ghost.BreakCalls(desktest.ErrGone, "installed") }, 502,
			map[string]string{"themes": "Ghost does not say which themes it has. Try again in a moment.", "curation": "Ghost does not answer as it should. Try again in a moment.", "integrations": "", "sync": ""},
		},
		"a Ghost that does not say its posts": {
			func(h *harness) { h.Ghost.BreakCalls(desktest.ErrGone, "tagged") }, 502,
			map[string]string{"curation": "Ghost does not say what the homepage holds. Try again in a moment.", "themes": "", "integrations": "", "sync": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newsroom(t)
			refresh(h)
			test.spoil(h)
			for page, text := range test.says {
				for _, method := range []string{"GET", "POST"} {
					if method == "POST" && page == "themes" && text != store {
						continue // a refresh does not ask Ghost first
					}
					if method == "POST" && page == "curation" && strings.HasPrefix(name, "a Ghost that does not say its posts") {
						continue // a choice is kept: TestChooseWhileGhostHangs
					}
					got := h.read(h.ask(method, path+page, "Owner", forms[page]))
					if text == "" {
						if got.Status >= 400 {
							t.Errorf("%s %s: got status %d, %s, want less than 400", method, page, got.Status, got.Text)
						}
						continue
					}
					if diff := cmp.Diff([]any{test.status, away, text}, []any{got.Status, got.Title, got.Text}); diff != "" {
						t.Errorf("%s %s (-want +got):\n%s", method, page, diff)
					}
				}
			}
		})
	}
}

// The picker cannot be shown without Ghost's posts, and says so.
func TestPickerWithoutGhost(t *testing.T) {
	h := newsroom(t)
	h.Ghost.BreakCalls(desktest.ErrGone, "published")
	page := h.get("curation?slot=top/lead", "Editor")
	if page.Status != 502 || page.Text != "Ghost does not say what the homepage holds. Try again in a moment." {
		t.Errorf("got status %d, %s, want 502, that Ghost does not respond", page.Status, page.Text)
	}
	h.Ghost.BreakCalls(&platform.Refusal{Reason: "Ghost does not like it."}, "tag")
	if notice, _ := slots(h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "3")); notice != "Lead story Ghost does not like it." {
		t.Errorf("refused: %q", notice)
	}
}
