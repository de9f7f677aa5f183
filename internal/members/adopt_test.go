package members_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

func adopting() members.Integration {
	i := membertest.ByID
	i.Adopt = true
	return i
}

// A create of an integration that adopts gives its member ID to the member who has the email and
// none of the integration yet, whether the store or only the platform knows them. What it does
// not name stays.
func TestAdoptedByEmail(t *testing.T) {
	for _, isAway := range []bool{false, true} {
		for _, isKnown := range []bool{false, true} {
			t.Run(fmt.Sprintf("platform away %v, known %v", isAway, isKnown), func(t *testing.T) {
				membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
					b.Platform.EditMember("p-old", func(m *platform.Member) {
						m.Email, m.Note, m.Status, m.CreatedAt = "Jane@example.com", "staff", "free", b.Now.Add(-time.Hour)
					})
					if isKnown {
						b.Refresh("p-old")
					}
					if isAway {
						b.Platform.Break(platformtest.ErrDown)
					}
					created := b.Create(adopting(), membertest.With("jane@example.com", membertest.ID("1"), membertest.Name("Jane")))
					if created.Queued != isAway || created.Member.MemberID != "1" {
						t.Errorf("Create = %+v, want queued %v, member ID 1", created, isAway)
					}
					b.Platform.Fix()
					b.CatchUp()
					got, err := b.Service.Get(t.Context(), adopting(), "1")
					if err != nil || got.Member.Name != "Jane" || got.Member.Note != "staff" || got.Member.Subscribed {
						t.Errorf("Get = %+v, %v, want Jane with the note of staff, not subscribed", got, err)
					}
					if diff := cmp.Diff([]string{"p-old"}, b.Platform.IDs()); diff != "" || b.Pending() != 0 {
						t.Errorf("on the platform: %s, %d pending", diff, b.Pending())
					}
				})
			})
		}
	}
}

// Who has a member ID of the integration keeps it: a second claim is as if the option was off.
// Another integration may adopt the member too. A refused create adopts nobody.
func TestAdoptedOnce(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		strict, other := adopting(), adopting()
		strict.DuplicateEmails, other.Name = false, "shop"
		b.Create(membertest.ByEmail, membertest.With("jane@example.com"))
		_, err := b.Service.Create(t.Context(), strict, membertest.With("jane@example.com", membertest.ID("1"), func(f *members.Fields) { f.Note = new("refused") }))
		if invalid, ok := errors.AsType[*members.InvalidError](err); !ok || invalid.Code != members.CodeRefused {
			t.Errorf("a note that the platform refuses: %v, want code %q", err, members.CodeRefused)
		}
		b.Create(strict, membertest.With("jane@example.com", membertest.ID("1")))
		for id, code := range map[string]members.Code{"2": members.CodeEmailTaken, "1": members.CodeMemberIDTaken} {
			_, err := b.Service.Create(t.Context(), strict, membertest.With("jane@example.com", membertest.ID(id)))
			if invalid, ok := errors.AsType[*members.InvalidError](err); !ok || invalid.Code != code && invalid.Code != members.CodeEmailTaken {
				t.Errorf("claim of %s: %v, want code %q", id, err, code)
			}
		}
		second := b.Create(adopting(), membertest.With("jane@example.com", membertest.ID("2")))
		if second.Member.Email != "2@members.invalid" {
			t.Errorf("a second claim where duplicates are allowed: %q, want a placeholder", second.Member.Email)
		}
		first := b.Create(other, membertest.With("jane@example.com", membertest.ID("s-1")))
		got, err := b.Service.Get(t.Context(), strict, "1")
		if err != nil || got.Member.GUID != first.Member.GUID {
			t.Errorf("Get = %+v, %v, want the member that the shop has", got, err)
		}
		b.SameOnPlatform("2@members.invalid ", "jane@example.com ")
	})
}
