package events

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// Nobody can keep the edge busy with a long text in a field of an event, whatever field a later version adds.
func TestFieldsAreReadInLinearTime(t *testing.T) {
	for _, f := range standardFields {
		lineartest.CheckTexts(t, lineartest.Text{
			Name: f.Key, Parts: []string{"漢", "a", "1", "-", "http://漢", "@,", "/", "\n"},
			Read: func(text string) {
				if f.spell != nil {
					text = f.spell(text)
				}
				f.wrong(map[string]any{f.Key: text, "event_date": text, "event_time_start": text, "event_time_zone": text}, platform.PostLimits{})
			},
		})
	}
}
