package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/standin"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// The rehearsal finds what is lost or doubled. Otherwise its zeros mean nothing.
func TestRehearsalFindsLostAndDoubledWrites(t *testing.T) {
	db := dbtest.SQLite(t)
	if err := eventstest.Fill(t.Context(), db, site, 2, 500); err != nil {
		t.Fatalf("eventstest.Fill: %v", err)
	}
	store, err := memberstore.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	f := &fleet{ghost: standin.New(0)}
	defer f.ghost.Close()
	p := newPublication()
	for n, guid := range []string{"a", "b", "c"} { // of which the last one is nowhere
		p.members[email(n)] = guid
		if n == 2 {
			continue
		}
		now := time.Now().UTC()
		m := members.Member{GUID: guid, Email: email(n), Status: "free", CreatedAt: now, UpdatedAt: now}
		if err := store.Insert(t.Context(), members.Record{Site: site, Member: m, Applied: 1}, "", members.Lease{}); err != nil {
			t.Fatalf("store.Insert: %v", err)
		}
	}
	for range 2 {
		f.ghost.Add("", standin.Member{Email: email(0)})
	}
	for n := range 2 {
		p.registered[seat{eventID(0), readerID(n)}] = struct{}{}
	}
	start := time.Now()
	p.drafts = []string{eventID(0), eventID(1)}
	p.saves = []save{
		{draft: 0, n: 0, sent: start, ended: start.Add(time.Second)},
		{draft: 0, n: 2, sent: start.Add(2 * time.Second), ended: start.Add(3 * time.Second)}, // lost: the draft has the first
		{draft: 1, n: 1, sent: start, ended: start.Add(2 * time.Second)},                      // at once with the next one, which the draft has
		{draft: 1, n: 3, sent: start.Add(time.Second), ended: start.Add(3 * time.Second)},
	}
	for _, statement := range []string{
		`INSERT INTO registrations (site, event, member, email, name, search, registered_at) VALUES ('rehearsal', '` + eventID(0) + `', '` + readerID(0) + `', '', '', '', 1)`,
		`INSERT INTO registrations_taken (site, event, taken) VALUES ('rehearsal', '` + eventID(0) + `', 2)`,
		`UPDATE events SET status = 'draft', content = '{"name":"Save 0"}' WHERE id = '` + eventID(0) + `'`,
		`UPDATE events SET status = 'draft', content = '{"name":"Save 3"}' WHERE id = '` + eventID(1) + `'`,
	} {
		dbtest.Exec(t, db, statement)
	}
	got, err := p.compare(t.Context(), f, db)
	if err != nil {
		t.Fatalf("p.compare: %v", err)
	}
	want := verdict{acknowledged: [4]int{3, 3, 2, 4}, lost: [4]int{1, 2, 1, 1}, doubled: [4]int{0, 1, 1, 0}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(verdict{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A goal that is missed in one part of the run is not hidden by the others, and of what fails only what a
// CRM wrote while something happened is no fault.
func TestMissedGoalsAreNotHidden(t *testing.T) {
	length := *duration / time.Duration(len(phases))
	faults := []span{{length, length + time.Second}}
	many := func(slow int) (list []sample) { // in the first phase all are quick, and in the second some are not
		for n := range 2000 {
			took := time.Millisecond
			if n < slow {
				took = time.Second
			}
			list = append(list, sample{due: length + time.Duration(n), took: took}, sample{took: time.Millisecond})
		}
		return list
	}
	failed := func(due time.Duration) []sample {
		return append(many(0), sample{due: due, took: time.Millisecond, isFailed: true})
	}
	tests := map[string]struct {
		kind *kind
		want int
	}{
		"all is well":                        {&kind{name: "lookup", samples: many(19)}, 0},
		"slow in one part":                   {&kind{name: "lookup", samples: many(20)}, 1},
		"a lookup failed":                    {&kind{name: "lookup", samples: failed(length)}, 1},
		"a create failed that was under way": {&kind{name: "create", isOfCRM: true, samples: failed(length + time.Second)}, 0},
		"a create failed later":              {&kind{name: "create", isOfCRM: true, samples: failed(length + 2*time.Second)}, 1},
		"a create failed before":             {&kind{name: "create", isOfCRM: true, samples: failed(length - 2*time.Millisecond)}, 1},
	}
	for name, test := range tests {
		if got := checkGoals([]*kind{test.kind}, faults, verdict{}); got != test.want {
			t.Errorf("%s: checkGoals = %d, want %d missed", name, got, test.want)
		}
	}
}

// A client asks another edge once, and no third time, when one fails; and takes a refusal of what it
// asked for as the response.
func TestClientsAskOneOtherEdge(t *testing.T) {
	var asked [3]int
	statuses := [3]int{http.StatusServiceUnavailable, http.StatusOK, http.StatusInternalServerError}
	l := &load{client: newClient(), start: time.Now()}
	for n, status := range statuses {
		edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked[n]++
			w.WriteHeader(status)
		}))
		defer edge.Close()
		l.bases = append(l.bases, edge.URL)
	}
	l.bases = append(l.bases, "http://127.0.0.1:"+freeport.New(t)) // where nobody answers
	get := func(int) request { return request{method: http.MethodGet, path: "/"} }
	k := &kind{edges: []int{0, 1, 2, 3}, request: get, accept: ok}
	for n := range k.edges {
		l.do(context.Background(), k, n, 0)
	}
	type outcome struct{ IsRetried, IsFailed bool }
	var got []outcome
	for _, s := range k.samples {
		got = append(got, outcome{s.isRetried, s.isFailed})
	}
	if diff := cmp.Diff([]outcome{{true, false}, {false, false}, {true, true}, {true, true}}, got); diff != "" {
		t.Errorf("clients (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([3]int{2, 2, 1}, asked); diff != "" {
		t.Errorf("requests at the edges (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"503": 2, "500": 1, "refused": 2}, k.tries); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}
