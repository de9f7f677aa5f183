package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// An import adds all members of the platform and updates known ones. A member with a
// pending delete does not come back.
func TestImportAddsAndUpdatesAllMembers(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		known := b.Record(b.Create(byEmail, with("known@example.com")))
		gone := b.Record(b.Create(byEmail, with("gone@example.com")))
		for i := range 7 {
			b.Platform.EditMember(fmt.Sprint("q-", i), func(m *platform.Member) {
				m.Email, m.Status, m.Labels = fmt.Sprintf("m%d@example.com", i), "free", []string{"old"}
			})
		}
		b.Platform.EditMember(known.PlatformID, func(m *platform.Member) { m.Name = "Known" })
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Delete(ctx, byEmail, "gone@example.com", nil); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		b.Platform.Fix()

		var told [][2]int
		got, err := b.Sync.Import(ctx, membertest.Site, b.Store, false, func(seen, total int) { told = append(told, [2]int{seen, total}) })
		if diff := cmp.Diff(inbound.Compared{Seen: 9, Added: 7, Changed: 1}, got); diff != "" || err != nil {
			t.Errorf("Import: error %v, want none (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff([][2]int{{3, 9}, {6, 9}, {9, 9}}, told); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		m, err := b.Store.Find(ctx, members.Key{Site: "daily", Email: "m6@example.com"})
		if err != nil || m.PlatformID != "q-6" || len(m.Labels) != 1 || m.Applied != m.Version {
			t.Errorf(`Find = %+v, %v, want no error, platformID "q-6", 1 label, applied %v`, m, err, m.Version)
		}
		if m := b.Get("known@example.com"); m.Name != "Known" {
			t.Errorf(`Get = %+v, want name "Known"`, m)
		}
		if _, err := b.Service.Get(ctx, byEmail, "gone@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("Get = %v, want error %v", err, members.ErrNotFound)
		}
		b.CatchUp()
		got, err = b.Sync.Import(ctx, membertest.Site, b.Store, false, func(int, int) {})
		if diff := cmp.Diff(inbound.Compared{Seen: 8}, got); diff != "" || err != nil {
			t.Errorf("again: %s, %v", diff, err)
		}
		if m, err := b.Store.Find(ctx, members.Key{Site: "daily", PlatformID: gone.PlatformID}); err != nil || !m.Deleted {
			t.Errorf("Find = %+v, %v, want no error, deleted", m, err)
		}
	})
}

// An interrupted import resumes after the last page.
func TestImportIsResumed(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	for i := range 7 {
		b.Platform.EditMember(fmt.Sprint("q-", i), func(m *platform.Member) { m.Email = fmt.Sprintf("m%d@example.com", i) })
	}
	interrupted := func(anew bool) (inbound.Compared, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return b.Sync.Import(ctx, membertest.Site, b.Store, anew, func(int, int) {
			cancel()
			b.Platform.Break(context.Canceled)
		})
	}
	for _, step := range []struct {
		anew bool
		want inbound.Compared
	}{
		{false, inbound.Compared{Seen: 3, Added: 3}},
		{false, inbound.Compared{Seen: 6, Added: 3}},
		{true, inbound.Compared{Seen: 3}},
	} {
		got, err := interrupted(step.anew)
		if diff := cmp.Diff(step.want, got); diff != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: error %v, want none (-want +got):\n%s", err, diff)
		}
		b.Platform.Fix()
	}
	got, err := b.Sync.Import(t.Context(), membertest.Site, b.Store, false, func(int, int) {})
	if diff := cmp.Diff(inbound.Compared{Seen: 7, Added: 1}, got); diff != "" || err != nil {
		t.Errorf("Import: error %v, want none (-want +got):\n%s", err, diff)
	}
}

// manyMembers is a platform with many members.
type manyMembers struct {
	platform.Platform
	n int
}

func (c manyMembers) List(_ context.Context, after string, _ time.Time) (page []platform.Member, left int, err error) {
	first := 0
	if after != "" {
		if _, err := fmt.Sscanf(after, "c-%d", &first); err != nil {
			return nil, 0, err
		}
		first++
	}
	for i := first; i < min(first+100, c.n); i++ {
		page = append(page, platform.Member{ID: fmt.Sprintf("c-%07d", i), Email: fmt.Sprintf("m%d@example.com", i), Labels: []string{"VIP"}})
	}
	return page, c.n - first, nil
}

// An import of many members needs no more memory than one of few.
func TestImportMemory(t *testing.T) {
	const n, most = 20_000, 2 << 20
	b := membertest.New(t, dbtest.SQLite(t))
	sync := b.NewEdge(inbound.Site{Platform: manyMembers{n: n}}, time.Minute).Sync
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	var early int64
	got, err := sync.Import(t.Context(), membertest.Site, b.Store, false, func(seen, _ int) {
		switch seen {
		case n / 10:
			early = heap()
		case n:
			if grown := heap() - early; grown > most {
				t.Errorf("%d bytes more after %d members than after %d", grown, n, n/10)
			}
		}
	})
	if diff := cmp.Diff(inbound.Compared{Seen: n, Added: n}, got); diff != "" || err != nil {
		t.Errorf("Import: error %v, want none (-want +got):\n%s", err, diff)
	}
}
