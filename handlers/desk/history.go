package desk

import (
	"cmp"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
)

// This file shows who did what.

// shownDeed is what somebody did.
type shownDeed struct {
	At        time.Time
	Name, Did string
	About     string // what else it was about, "" for nothing
}

// deeds are what was done, in words.
var deeds = map[string]string{
	"created": "made it", "written": "gave it a post, for its text", history.Changed: "changed it", "scheduled": "scheduled it", "restored": "put its card back into the text",
	"published": "published it", "unpublished": "unpublished it", "cancelled": "cancelled it",
	"filled": "chose", "cleared": "cleared it", curation.Refused: "refused it:",
	"added": "added it", "rotated": "gave it another key", "revoked": "revoked it",
}

// shownDeedsOf says what was done on the desk, and in a platform of a title.
func shownDeedsOf(title string, entries []history.Entry) (list []shownDeed) {
	for _, e := range entries {
		shown := shownDeed{At: e.At, About: clip.Text(e.About, maxTitle), Did: cmp.Or(deeds[e.Did], clip.Text(e.Did, maxLabel))}
		switch shown.Name = cmp.Or(clip.Text(e.Name, maxLabel), "somebody"); {
		case e.Did == curation.Refused:
			shown.Name = title
		case e.ID == "":
			shown.Did += " in " + title
		}
		list = append(list, shown)
	}
	return list
}
