package push_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/members/push"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

var (
	byEmail, byID  = membertest.ByEmail, membertest.ByID
	with, name, id = membertest.With, membertest.Name, membertest.ID
)

// The key is the email, or the member ID if there is no email.
func row(line int, f members.Fields) push.Row {
	r := push.Row{Line: line, Fields: func(*members.Member) (members.Fields, error) { return f, nil }}
	if f.Email != nil {
		r.Identifier, r.Email = *f.Email, *f.Email
	}
	if f.MemberID != nil {
		r.Identifier = *f.MemberID
	}
	return r
}

func rows(list ...members.Fields) iter.Seq2[push.Row, error] {
	return func(yield func(push.Row, error) bool) {
		for i, f := range list {
			if !yield(row(i+2, f), nil) {
				return
			}
		}
	}
}

// pushed is what became of a push.
type pushed struct {
	push.Counts
	Refused []string
	Err     error
}

func run(t *testing.T, b *membertest.Bench, i members.Integration, list iter.Seq2[push.Row, error], more ...func(*push.Config)) pushed {
	t.Helper()
	var p pushed
	cfg := push.Config{Service: b.Service, Integration: i, Refused: func(row push.Row, reason string) error {
		p.Refused = append(p.Refused, fmt.Sprintf("%d %s: %s", row.Line, row.Identifier, reason))
		return nil
	}}
	for _, change := range more {
		change(&cfg)
	}
	p.Counts, p.Err = push.Run(t.Context(), cfg, list)
	slices.Sort(p.Refused)
	return p
}

func dryRun(c *push.Config) { c.DryRun = true }

// Members are created and changed on both sides, what is refused is said with its line,
// and a second push of the same does nothing.
func TestPushCreatesAndChangesMembers(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byEmail, with("known@example.com", name("Known")))
		b.Platform.Members["p-staff"] = platform.Member{ID: "p-staff", Email: "staff@example.com", Name: "Staff", Status: "free"}
		list := rows(
			with("new@example.com", name("New")),
			with("known@example.com", name("Renamed")),
			with("staff@example.com", name("Of the CRM")),
			with("refused@example.com"),
			with("not an address"),
			with("NEW@example.com", name("Newer")),
		)
		refused := []string{"5 refused@example.com: Ghost does not like it.", "6 not an address: The email is not a valid address."}
		want := pushed{Counts: push.Counts{Created: 3, Updated: 2, Refused: 1}, Refused: refused[1:]}
		if diff := cmp.Diff(want, run(t, b, byEmail, list, dryRun)); diff != "" {
			t.Errorf("dry run: %s", diff)
		}
		if emails := b.Platform.Emails(); len(emails) != 2 {
			t.Errorf("a dry run wrote: %q", emails)
		}
		want = pushed{Counts: push.Counts{Created: 1, Updated: 3, Refused: 2}, Refused: refused}
		if diff := cmp.Diff(want, run(t, b, byEmail, list)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		b.SameOnPlatform("known@example.com Renamed", "new@example.com Newer", "staff@example.com Of the CRM")
		unchanged := rows(with("new@example.com", name("Newer")), with("known@example.com"), with("staff@example.com"))
		b.Platform.Break(errors.New("the platform was asked"))
		if diff := cmp.Diff(pushed{Counts: push.Counts{Unchanged: 3}}, run(t, b, byEmail, unchanged)); diff != "" {
			t.Errorf("again: %s", diff)
		}
	})
}

// In Custom ID mode the first of several with one email gets it, and a second push
// leaves the placeholders of the others alone.
func TestPushDuplicates(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		var all []members.Fields
		for n := range 20 {
			all = append(all, with(fmt.Sprintf("m%d@example.com", n/2), id(fmt.Sprint("c-", n)), func(f *members.Fields) { f.Subscribed = new(true) }))
		}
		for again, want := range []push.Counts{{Created: 20}, {Unchanged: 20}} {
			if diff := cmp.Diff(pushed{Counts: want}, run(t, b, byID, rows(all...))); diff != "" {
				t.Errorf("push %d: %s", again, diff)
			}
		}
		var got, wanted []string
		for n := range 20 {
			m, err := b.Service.Get(t.Context(), byID, fmt.Sprint("c-", n))
			if err != nil {
				t.Fatalf("error %v, want none", err)
			}
			got = append(got, fmt.Sprint(m.Member.Email, " ", m.Member.Subscribed))
			want := fmt.Sprintf("m%d@example.com true", n/2)
			if n%2 == 1 {
				want = fmt.Sprintf("c-%d@%s false", n, byID.PlaceholderDomain)
			}
			wanted = append(wanted, want)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A member whom only the platform has gets the ID of the row, also if the platform is away at first, and the next push
// changes nothing.
func TestPushAdoptsThePlatformsMember(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com", Name: "Old", CreatedAt: b.Now.Add(-time.Hour)}
		b.Platform.Break(platformtest.ErrDown)
		fix := func(c *push.Config) { c.Waiting = func(string) { b.Platform.Fix() } }
		for _, want := range []push.Counts{{Created: 1}, {Unchanged: 1}} {
			if got := run(t, b, byID, rows(with("old@example.com", id("c-1"), name("New"))), fix); !cmp.Equal(pushed{Counts: want}, got) {
				t.Errorf("push: got %+v, want %+v", got, want)
			}
		}
		want := []string{"old@example.com New"}
		if got := slices.Sorted(slices.Values(b.Platform.Emails())); !slices.Equal(got, want) {
			t.Errorf("on the platform: got %q, want %q", got, want)
		}
	})
}

// A member whom the store has gets the ID of the row, and a dry run counts them as updated.
func TestPushAdopts(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byEmail, with("jane@example.com"))
		want := pushed{Counts: push.Counts{Updated: 1}}
		for _, more := range [][]func(*push.Config){{dryRun}, nil} {
			if got := run(t, b, byID, rows(with("jane@example.com", id("c-1"))), more...); !cmp.Equal(want, got) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		b.SameOnPlatform("jane@example.com ")
	})
}

// A row that stands twice is counted as created once, also by a dry run.
func TestPushOfRowsTwice(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		jane := with("jane@example.com", name("Jane"))
		for _, more := range [][]func(*push.Config){{dryRun}, nil} {
			want := pushed{Counts: push.Counts{Created: 1, Unchanged: 1}}
			if got := run(t, b, byEmail, rows(jane, jane), more...); !cmp.Equal(want, got) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
}

// A dry run asks the platform nothing, also about an email that only the platform's own member may have,
// and leaves the store as it was.
func TestDryRunAsksNobody(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com", Name: "Old", CreatedAt: b.Now.Add(-time.Hour)}
		b.Create(byID, with("old@example.com", id("c-1")))
		b.Platform.Fail(func(call, of string) error {
			t.Errorf("asked to %s %s, want nothing", call, of)
			return nil
		})
		run(t, b, byID, rows(with("old@example.com", id("c-1"))), dryRun)
		if _, err := b.Store.Find(t.Context(), members.Key{Site: membertest.Site, Email: "old@example.com"}); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("the platform's member in the store: %v, want %v", err, members.ErrNotFound)
		}
	})
}

// The rows of one member are done in their order, also where a later one wants an email
// that an earlier one lets go of.
func TestPushInOrder(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		strict := byID
		strict.Name, strict.DuplicateEmails = "strict", false
		var all []members.Fields
		for n := range 30 {
			all = append(all, with("jane@example.com", id("c-1"), name(fmt.Sprint("Jane ", n))))
		}
		for n := range 10 { // each takes the email of the one before
			all = append(all, with(fmt.Sprintf("moved%d@example.com", n), id(fmt.Sprint("c-", n+1))), with("jane@example.com", id(fmt.Sprint("c-", n+2))))
		}
		got := run(t, b, strict, rows(all...))
		if got.Counts.Refused != 0 || got.Err != nil || got.Created != 11 {
			t.Errorf("got %+v, want none refused, no error, 11 created", got)
		}
		for n := range 10 {
			if m, err := b.Service.Get(t.Context(), strict, fmt.Sprint("c-", n+1)); err != nil || m.Member.Email != fmt.Sprintf("moved%d@example.com", n) {
				t.Errorf("c-%d: %+v, %v", n+1, m, err)
			}
		}
		if m, err := b.Service.Get(t.Context(), strict, "c-1"); err != nil || m.Member.Name != "Jane 29" {
			t.Errorf(`Get = %+v, %v, want no error, name "Jane 29"`, m, err)
		}
	})
}

// While the platform is away a push waits, says so once, and goes on when it is back.
func TestPushWaits(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.Break(platformtest.ErrDown)
	var said []string
	waiting := func(c *push.Config) {
		c.Waiting = func(problem string) {
			said = append(said, problem)
			b.Platform.Fix()
		}
	}
	var all []members.Fields
	for n := range 10 {
		all = append(all, with(fmt.Sprintf("m%d@example.com", n)))
	}
	all = append(all, with("refused@example.com"))
	got := run(t, b, byEmail, rows(all...), waiting)
	want := pushed{Counts: push.Counts{Created: 10, Refused: 1}, Refused: []string{"12 refused@example.com: Ghost does not like it."}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{platformtest.ErrDown.Error(), ""}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(b.Platform.Emails()); n != 10 || b.Pending() != 0 {
		t.Errorf("%d members on the platform, %d pending", n, b.Pending())
	}
}

// A push that is interrupted while it waits keeps what is queued, and the next one goes
// on from there.
func TestPushInterrupted(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.Break(platformtest.ErrDown)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []members.Fields
	for n := range 100 {
		all = append(all, with(fmt.Sprintf("m%d@example.com", n)))
	}
	counts, err := push.Run(ctx, push.Config{Service: b.Service, Integration: byEmail, Waiting: func(string) { cancel() }}, rows(all...))
	if !errors.Is(err, context.Canceled) || counts.Queued != b.Pending() || counts.Queued == 0 || counts.Queued > 4 || counts.Total() != 0 {
		t.Errorf("%+v, %v; %d pending", counts, err, b.Pending())
	}
	b.Platform.Fix()
	b.Now = b.Now.Add(2 * time.Minute) // nothing that was sent before can still arrive
	b.Edge = b.NewEdge(inbound.Site{Platform: b.Platform}, time.Minute)
	got := run(t, b, byEmail, rows(all...))
	if got.Err != nil || got.Created+got.Updated+got.Unchanged != 100 || len(b.Platform.Emails()) != 100 || b.Pending() != 0 {
		t.Errorf("%+v; %d on the platform, %d pending", got, len(b.Platform.Emails()), b.Pending())
	}
}

// A row that is being read while the push is interrupted is not started: who interrupts a push may count on
// what it says that is queued.
func TestPushInterruptedWhileReading(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	for n := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		next := row(2, with(fmt.Sprintf("m%d@example.com", n)))
		next.Fields = func(*members.Member) (members.Fields, error) {
			cancel()
			return with(next.Email), nil
		}
		counts, err := push.Run(ctx, push.Config{Service: b.Service, Integration: byEmail}, func(yield func(push.Row, error) bool) { yield(next, nil) })
		if !errors.Is(err, context.Canceled) || counts != (push.Counts{}) {
			t.Errorf("push %d: %+v, %v, want no row done or queued, %v", n, counts, err, context.Canceled)
		}
	}
}

// What cannot be read, and a store that is broken, end a push with the line.
func TestPushEnds(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	broken := errors.New("a quote is missing")
	got := run(t, b, byEmail, func(yield func(push.Row, error) bool) {
		_ = yield(row(2, with("a@example.com")), nil) && yield(push.Row{}, broken)
	})
	if !errors.Is(got.Err, broken) || got.Created != 1 {
		t.Errorf("got %+v, want error %v, created 1", got, broken)
	}
	if err := b.DB.Close(); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	got = run(t, b, byEmail, rows(with("b@example.com")))
	if got.Err == nil || !strings.HasPrefix(got.Err.Error(), "line 2: ") {
		t.Errorf(`got %+v, want an error, beginning with "line 2: "`, got)
	}
}

// A member whose create the platform refused, after it was queued, is created by a push.
func TestPushAfterARefusal(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.Break(platformtest.ErrDown)
	queued, err := b.Service.Create(t.Context(), byEmail, with("jane@example.com", name("Jane")))
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	b.Platform.Break(nil)
	if err := b.Store.RefuseCreate(t.Context(), queued.Member.GUID, 1, "There is no newsletter 1.", time.Now()); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	got := run(t, b, byEmail, rows(with("jane@example.com", name("Jane"))))
	if diff := cmp.Diff(pushed{Counts: push.Counts{Created: 1}}, got); diff != "" {
		t.Errorf("a push of the member that was refused: %s", diff)
	}
	if m, err := b.Platform.FindByEmail(t.Context(), "jane@example.com"); err != nil || m.Name != "Jane" {
		t.Errorf("the platform has %+v, %v, want the member", m, err)
	}
}
