package events_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// wait puts some readers on the waiting list: ann, bob and cem.
func (l *list) wait() {
	l.t.Helper()
	dbtest.Exec(l.t, l.DB, `INSERT INTO registrations_waiting (site, event, member, email, name, language, since, offered_until) VALUES
		('daily', $1, 'uuid-ann', 'ann@example.com', '=Ann', '', 1000, 4102444800000), ('daily', $1, 'uuid-bob', 'bob@example.com', 'Bob', '', 2000, NULL), ('daily', $1, 'uuid-cem', 'cem@example.com', '', '', 3000, NULL)`, l.event.ID)
	dbtest.Exec(l.t, l.DB, `UPDATE registrations_taken SET taken = taken + 1`)
}

// Staff's programs list who waits, move somebody up and take somebody off the list.
func TestWaitingListOfPrograms(t *testing.T) {
	l := openList(t, map[string]any{"max_attendees": 2.0, "waiting_list": "invite"})
	l.add(1, "Jane")
	l.wait()
	s := exchange.Serve(t, serveStaff(l.Harness))
	const ann = `{"member":"uuid-ann","email":"ann@example.com","name":"=Ann","since":"1970-01-01T00:00:01Z","offered_until":"2100-01-01T00:00:00Z"}`
	const bob = `{"member":"uuid-bob","email":"bob@example.com","name":"Bob","since":"1970-01-01T00:00:02Z","offered_until":null}`
	for _, step := range []struct {
		name, method, path, body string
		want                     int
		says                     string // a part of the body
	}{
		{"listed", "GET", "/waiting?limit=2", "", 200, `{"waiting":[` + ann + `,` + bob + `],"total":3,"next":"2000.uuid-bob"}`},
		{"the next page", "GET", "/waiting?limit=2&after=2000.uuid-bob", "", 200, `{"waiting":[{"member":"uuid-cem","email":"cem@example.com","name":"",`},
		{"searched", "GET", "/waiting?q=bob", "", 200, `{"waiting":[` + bob + `],"total":3,"next":null}`},
		{"without the body", "HEAD", "/waiting", "", 200, ""},
		{"without a place", "POST", "/waiting/uuid-bob", "{}", 409, `{"message":"All 2 places are taken.","reason":"full"}`},
		{"over the limit", "POST", "/waiting/uuid-bob", `{"over_limit":true}`, 201, `"member":"uuid-bob","email":"bob@example.com","name":"Bob"`},
		{"again", "POST", "/waiting/uuid-bob", `{}`, 200, `"member":"uuid-bob"`},
		{"with an offer", "POST", "/waiting/uuid-ann", `{}`, 201, `"member":"uuid-ann"`},
		{"removed", "DELETE", "/waiting/uuid-cem", "", 204, ""},
		{"removed again", "DELETE", "/waiting/uuid-cem", "", 404, "This guest is not on the waiting list."},
		{"who does not wait", "POST", "/waiting/uuid-cem", `{}`, 404, "This guest is not on the waiting list."},
		{"another path", "DELETE", "/waiting/uuid-cem/x", "", 404, ""},
		{"nobody waits", "GET", "/waiting", "", 200, `{"waiting":[],"total":0,"next":null}`},
	} {
		got := s.Ask("Editor", step.method, desk+"/"+l.event.ID+step.path, step.body)
		if got.Status != step.want || !strings.Contains(got.Body, step.says) {
			t.Errorf("%s: %d %s, want %d with %s", step.name, got.Status, got.Body, step.want, step.says)
		}
	}
}

// Nobody but editors gets to who waits.
func TestWhoMaySeeWhoWaits(t *testing.T) {
	desktest.ForEditors(t, serveStaff, func(h *desktest.Harness) []desktest.Endpoint {
		one := desk
		if h != nil {
			e, err := h.Events.Create(t.Context(), "daily", events.Edit{Theme: "nightly", Type: "webinar"})
			if err != nil {
				t.Fatalf("h.Events.Create: %v", err)
			}
			one += "/" + e.ID
		}
		return []desktest.Endpoint{{"GET", one + "/waiting", ""}, {"HEAD", one + "/waiting", ""}, {"POST", one + "/waiting/nobody", "{}"}, {"DELETE", one + "/waiting/nobody", ""}}
	})
}

// A guest list's file has who waits below the guests, with nothing in the columns of guests.
func TestWaitingListAsCSV(t *testing.T) {
	l := openList(t, map[string]any{"max_attendees": 2.0, "waiting_list": "invite"})
	l.add(1, "Jane")
	l.wait()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(l.ask("editor", "GET", "/registrations.csv", "").Body.String(), "\ufeff"))).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("csv.ReadAll: %v, %d rows, want 5", err, len(rows))
	}
	want := [][]string{
		{"ann@example.com", "'=Ann", "", "", "", "", "", "1970-01-01 00:00:01"},
		{"bob@example.com", "Bob", "", "", "", "", "", "1970-01-01 00:00:02"},
		{"cem@example.com", "", "", "", "", "", "", "1970-01-01 00:00:03"},
	}
	if diff := cmp.Diff(want, rows[2:]); diff != "" || rows[1][7] != "" {
		t.Errorf("who waits, below %v, want -, got +: %s", rows[1], diff)
	}
}
