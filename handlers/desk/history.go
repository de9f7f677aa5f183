package desk

import (
	"cmp"
	"time"

	"github.com/lychgate/caddy-lychgate/history"
	"github.com/lychgate/caddy-lychgate/internal/clip"
)

// This file shows who did what.

// shownDeed is what somebody did.
type shownDeed struct {
	At        time.Time
	Name, Did string // Name is "" for what was done on the platform
}

// deeds are what was done, in words.
var deeds = map[string]string{
	"created": "made it", "written": "gave it a post, for its text", history.Changed: "changed it", "scheduled": "scheduled it",
	"published": "published it", "unpublished": "unpublished it", "cancelled": "cancelled it",
}

func shownDeeds(entries []history.Entry) (list []shownDeed) {
	for _, e := range entries {
		shown := shownDeed{At: e.At, Did: cmp.Or(deeds[e.Did], clip.Text(e.Did, maxLabel))}
		if e.ID != "" {
			shown.Name = cmp.Or(clip.Text(e.Name, maxLabel), "Somebody")
		}
		list = append(list, shown)
	}
	return list
}
