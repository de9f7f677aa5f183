package events

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// What a publication is called is asked for once, and its time zone and the address of its
// calendar go by it. Another address and UTC stand in for them while it does not say.
func TestPublicationDecidesZoneAndAddress(t *testing.T) {
	for _, test := range []struct {
		name              string
		list              string
		isDown            bool
		wantZone, wantURL string
		asked             int
	}{
		{name: "known", list: "/blog/events", wantZone: "Europe/Berlin", wantURL: "https://news.example.com/blog/events.ics", asked: 1},
		{name: "away", list: "/events", isDown: true, wantZone: "UTC", wantURL: "https://desk.example.com/events.ics", asked: 3},
		{name: "without readers", wantZone: "Europe/Berlin", asked: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := platformtest.New()
			asked := 0
			h.Fail(func(call, _ string) error {
				if call != "publication" {
					return nil
				}
				if asked++; test.isDown {
					return platformtest.ErrDown
				}
				return nil
			})
			r := benchOf(t, want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t))), h)
			r.pages.List = test.list
			for range 2 {
				zone, err := r.Zone(t.Context(), "daily")
				if zone.String() != test.wantZone || (err != nil) != test.isDown {
					t.Errorf("the zone is %v, %v; want %s, and an error: %t", zone, err, test.wantZone, test.isDown)
				}
				wantTitle := ""
				if !test.isDown {
					wantTitle = "The Daily"
				}
				if got := r.Title(t.Context(), "daily"); got != wantTitle {
					t.Errorf("the title is %q, want %q", got, wantTitle)
				}
				if got := r.Calendar(t.Context(), "daily", "https://desk.example.com"); got != test.wantURL {
					t.Errorf("the calendar is at %q, want %q", got, test.wantURL)
				}
			}
			if zone, err := r.Zone(t.Context(), "gone"); zone != time.UTC || err != nil {
				t.Errorf("the zone of a site that is not served is %v, %v; want UTC", zone, err)
			}
			if h.Do(func() {}); asked != test.asked {
				t.Errorf("the platform was asked %d times, want %d", asked, test.asked)
			}
		})
	}
}

// movedHost is a platform whose publication is in a zone.
type movedHost struct {
	platform.EventHost

	zone string
	err  error
}

func (h *movedHost) Publication(context.Context) (platform.Publication, error) {
	return platform.Publication{TimeZone: h.zone}, h.err
}

// A time zone that was changed on the platform is known after a minute, and the last one stays while it does not respond.
func TestZoneIsKnownAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &movedHost{zone: "Europe/Berlin"}
		pages := sitePages{hosts: func(string) platform.EventHost { return h }, publications: newPublications()}
		check := func(want string) {
			t.Helper()
			if zone, err := pages.Zone(t.Context(), "daily"); zone.String() != want || err != nil {
				t.Errorf("the zone is %v, %v, want %s", zone, err, want)
			}
		}
		check("Europe/Berlin")
		h.zone = "Asia/Tokyo"
		time.Sleep(59 * time.Second)
		check("Europe/Berlin")
		time.Sleep(time.Second)
		check("Asia/Tokyo")
		h.zone, h.err = "", errors.New("down")
		time.Sleep(time.Minute)
		check("Asia/Tokyo")
	})
}

// What a publication said last stands in while its platform does not respond, and while nothing is known it is asked once for all.
func TestLastPublicationStays(t *testing.T) {
	h := platformtest.New()
	r := benchOf(t, want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t))), h)
	r.pages.List = "/events"
	said := func() []any {
		language, isKnown := r.Language(t.Context(), "daily")
		return []any{r.Calendar(t.Context(), "daily", "https://desk.example.com"), language, isKnown, r.Title(t.Context(), "daily")}
	}
	asked := 0
	h.Fail(func(string, string) error { asked++; return platformtest.ErrDown })
	if diff := cmp.Diff([]any{"https://desk.example.com/events.ics", "en", false, ""}, said()); diff != "" || asked != 1 {
		t.Errorf("while nothing is known it was asked %d times, want 1; -want +got:\n%s", asked, diff)
	}
	h.Fix()
	r.publications = newPublications()
	now := []any{"https://news.example.com/events.ics", "de", true, "The Daily"}
	if diff := cmp.Diff(now, said()); diff != "" {
		t.Errorf("once it responds (-want +got):\n%s", diff)
	}
	r.publications.Forget("daily") // as after publicationTTL
	h.Break(platformtest.ErrDown)
	if diff := cmp.Diff(now, said()); diff != "" {
		t.Errorf("while it is away (-want +got):\n%s", diff)
	}
}

// A reader who leaves while the platform is asked leaves its title to the others.
func TestTitleOutlivesItsReader(t *testing.T) {
	h := platformtest.New()
	waiting, release := h.Hold("publication")
	r := benchOf(t, want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t))), h)
	ctx, leave := context.WithCancel(t.Context())
	title := make(chan string)
	go func() { title <- r.Title(ctx, "daily") }()
	<-waiting
	leave()
	release()
	if got := <-title; got != "The Daily" {
		t.Errorf("the title is %q, want The Daily", got)
	}
}
