package outbox_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// queue puts pending records into the store.
func queue(b *membertest.Bench, site string, n int) {
	b.T.Helper()
	for i := range n {
		r := members.Record{
			Member: members.Member{GUID: fmt.Sprint(site, i), Email: fmt.Sprintf("m%d@example.com", i), Status: "free", CreatedAt: b.Now, UpdatedAt: b.Now},
			Site:   site, Named: [5]int64{1},
		}
		if err := b.Store.Insert(b.T.Context(), r, "", members.Lease{}); err != nil {
			b.T.Fatalf("b.Store.Insert: %v", err)
		}
	}
}

// A platform that hangs delays no other, and gets four requests at a time at most.
func TestSitesDoNotWaitForEachOther(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	slow, quick := platformtest.New(), platformtest.New()
	calls, release := slow.Hold("create")
	o := b.NewOutbox(outbox.Config{Platform: membertest.Serve(map[string]platform.Platform{"slow": slow, "quick": quick})})
	queue(b, "slow", 100)
	queue(b, "other", 3) // of another process
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		o.Work.Run(ctx)
		close(done)
	}()
	for range 4 {
		<-calls
	}
	queue(b, "quick", 20)
	o.Work.Wake("quick")
	left := func(site string) string {
		n, err := b.Store.CountPending(t.Context(), site)
		if n > 0 || err != nil {
			return fmt.Sprintf("%s: %d are pending, %v", site, n, err)
		}
		return ""
	}
	wait.Until(t, func() string { return left("quick") })
	if n := len(calls); n > 0 {
		t.Errorf("the slow platform has %d requests at a time", 4+n)
	}
	release()
	wait.Until(t, func() string { return left("slow") })
	cancel()
	<-done
	if n, err := b.Store.CountPending(t.Context(), "other"); n != 3 || err != nil {
		t.Errorf("of another process's site %d are pending, %v", n, err)
	}
}
