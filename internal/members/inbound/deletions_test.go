package inbound_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// However a member is deleted, others are told by which email they knew the member, once the
// platform does not have the member, and not of those who stay.
func TestDeletionsAreToldByEmail(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ids := make(map[string]string)
		for n := range 5 {
			email := fmt.Sprintf("m%d@example.com", n)
			ids[email] = b.Record(b.Create(byEmail, with(email))).PlatformID
		}
		told := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, b.Deleted()); diff != "" {
				t.Errorf("%s: of deletions is told (-want +got): %s", what, diff)
			}
		}
		told("created")
		onPlatform := func(email string) {
			t.Helper()
			if err := b.Platform.Delete(t.Context(), ids[email]); err != nil {
				t.Fatalf("b.Platform.Delete: %v", err)
			}
		}
		b.Refresh(ids["m0@example.com"])
		told("still there")
		onPlatform("m0@example.com")
		b.Refresh(ids["m0@example.com"])
		told("an event comes", "m0@example.com")

		onPlatform("m1@example.com")
		edge := newComparing(b, b.Platform)
		edge.look()
		told("all are compared", "m1@example.com")

		if _, err := b.Service.Delete(t.Context(), byEmail, "m2@example.com", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		told("a CRM deletes", "m2@example.com")

		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "m3@example.com", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		told("a CRM deletes while the platform is away")
		b.Platform.Fix()
		b.CatchUp()
		told("the platform is back", "m3@example.com")
	})
}
