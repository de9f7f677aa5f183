package members_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
)

func subscribed(yes bool) func(*members.Fields) {
	return func(f *members.Fields) { f.Subscribed = &yes }
}

func newsletters(list ...members.Newsletter) func(*members.Fields) {
	return func(f *members.Fields) { f.Newsletters = &list }
}

// Nobody can have mail sent to a placeholder, no matter who asks and how.
func TestPlaceholdersGetNoMail(t *testing.T) {
	stored := members.Integration{
		Site: membertest.Site, Name: "stored", Mode: members.CustomIDMode, DuplicateEmails: true, PlaceholderDomain: "Nobody.Example", SubscribeByDefault: true,
	}
	n1 := members.Newsletter{ID: "n1"}
	off := members.Newsletter{ID: "n1", Status: "inactive"}
	none := func(*members.Fields) {}
	with := func(more func(*members.Fields)) members.Fields {
		var f members.Fields
		more(&f)
		return f
	}
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		if err := b.Store.AddIntegration(t.Context(), stored); err != nil {
			t.Fatalf("b.Store.AddIntegration: %v", err)
		}
		// Revoked, it still has its members.
		if err := b.Store.RevokeIntegration(t.Context(), membertest.Site, stored.Name, b.Now); err != nil {
			t.Fatalf("b.Store.RevokeIntegration: %v", err)
		}
		b.Create(byID, membertest.With("jane@example.com", id("1")))
		b.Create(byID, membertest.With("jane@example.com", id("2"), subscribed(true)))
		b.Create(stored, membertest.With("jane@example.com", id("2")))

		for _, test := range []struct {
			name       string
			of         members.Integration
			identifier string // empty for a create
			fields     members.Fields
			want       error
		}{
			{"by its ID", byID, "2", with(subscribed(true)), members.ErrPlaceholder},
			{"newsletters by its ID", byID, "2", with(newsletters(n1)), members.ErrPlaceholder},
			{"by email", byEmail, "2@members.invalid", with(subscribed(true)), members.ErrPlaceholder},
			{"newsletters by email", byEmail, "2@members.invalid", with(newsletters(off, n1)), members.ErrPlaceholder},
			{"in another case", byEmail, "2@Members.INVALID", with(subscribed(true)), members.ErrPlaceholder},
			{"of an integration in the store", byEmail, "2@nobody.example", with(subscribed(true)), members.ErrPlaceholder},
			{"of another integration", byID, "1", membertest.With("x@nobody.example"), members.ErrPlaceholder},
			{"a move to such an address", byID, "1", membertest.With("x@members.invalid"), members.ErrPlaceholder},
			{"a move in an IDNA form", byEmail, "jane@example.com", membertest.With("x@m\uff45mbers.invalid"), members.ErrPlaceholder},
			{"a new one", byEmail, "", membertest.With("new@members.invalid", subscribed(true)), members.ErrPlaceholder},
			{"a new one with newsletters", byID, "", membertest.With("new@nobody.example", id("9"), newsletters(n1)), members.ErrPlaceholder},

			{"unsubscribed", byEmail, "2@members.invalid", with(subscribed(false)), nil},
			{"newsletters that are inactive", byID, "2", with(newsletters(off)), nil},
			{"another field", byEmail, "2@members.invalid", with(name("Two")), nil},
			{"as it was read", byID, "2", membertest.With("2@members.invalid", subscribed(false), name("Two")), nil},
			{"a new one by default", byEmail, "", membertest.With("default@members.invalid"), nil},
			{"a move without a subscription", byEmail, "default@members.invalid", membertest.With("moved@nobody.example"), nil},
			{"nothing", byID, "2", with(none), nil},
		} {
			var err error
			if test.identifier == "" {
				_, err = b.Service.Create(t.Context(), test.of, test.fields)
			} else {
				_, err = b.Service.Update(t.Context(), test.of, test.identifier, test.fields, nil)
			}
			if !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
		b.SameOnPlatform("2@Nobody.Example ", "2@members.invalid Two", "jane@example.com ", "moved@nobody.example ")
		for _, m := range b.Platform.Members {
			if m.Subscribed != (m.Email == "jane@example.com") {
				t.Errorf("%s is subscribed: %t", m.Email, m.Subscribed)
			}
		}
		// With an address of its own it is a member like any other.
		moved, err := b.Service.Update(t.Context(), byID, "2", membertest.With("two@example.com", subscribed(true)), nil)
		if err != nil || !moved.Member.Subscribed {
			t.Errorf("an address of its own: %+v, %v", moved.Member, err)
		}
	})
}

// What staff do with a placeholder in the platform is theirs: a write that does not name
// the subscription leaves it alone.
func TestPlaceholderThatStaffSubscribed(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byID, with("jane@example.com", id("1")))
		two := b.Record(b.Create(byID, with("jane@example.com", id("2"))))
		b.Platform.EditMember(two.PlatformID, func(m *platform.Member) { m.Subscribed = true })
		b.Refresh(two.PlatformID)
		result, err := b.Service.Update(t.Context(), byID, "2", members.Fields{Name: new("Two")}, nil)
		if err != nil || !result.Member.Subscribed || !b.Platform.Members[two.PlatformID].Subscribed {
			t.Errorf("Update = %+v, %v, want no error, subscribed, subscribed", result, err)
		}
	})
}

// An integration that is added to the store while edges run is known to all of them within
// seconds, and at once to the one that it uses.
func TestPlaceholdersOfANewIntegration(t *testing.T) {
	added := members.Integration{Site: membertest.Site, Name: "added", Mode: members.CustomIDMode, DuplicateEmails: true, PlaceholderDomain: "nobody.example"}
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byEmail, with("jane@example.com"))
		if err := b.Store.AddIntegration(t.Context(), added); err != nil {
			t.Fatalf("b.Store.AddIntegration: %v", err)
		}
		if _, err := b.Service.Create(t.Context(), added, with("2@nobody.example", id("2"), subscribed(true))); !errors.Is(err, members.ErrPlaceholder) {
			t.Errorf("at once: %v", err)
		}
		b.Now = b.Now.Add(6 * time.Second)
		if _, err := b.Service.Create(t.Context(), byEmail, with("2@nobody.example", subscribed(true))); !errors.Is(err, members.ErrPlaceholder) {
			t.Errorf("by another, some seconds later: %v", err)
		}
	})
}

// An update to an email that another member has changes nothing, whether it is known here
// or to the platform alone.
func TestUpdateToATakenEmail(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com"}
		b.Create(byID, with("jane@example.com", id("1")))
		joe := b.Create(byID, with("joe@example.com", id("2")))
		duplicate := b.Create(byID, with("jane@example.com", id("3")))
		for _, test := range []struct {
			of    members.Result
			email string
		}{
			{joe, "jane@example.com"},
			{joe, "JANE@example.com"},
			{joe, "old@example.com"},
			{duplicate, "jane@example.com"},
			{duplicate, "Old@example.com"},
		} {
			before := b.Record(test.of)
			_, err := b.Service.Update(t.Context(), byID, test.of.Member.MemberID, with(test.email, name("New")), nil)
			var invalid *members.InvalidError
			if !errors.As(err, &invalid) || invalid.Message != members.EmailTaken {
				t.Errorf("%s: %v, want %q", test.email, err, members.EmailTaken)
			}
			if diff := cmp.Diff(before, b.Record(test.of), cmpopts.IgnoreFields(members.Record{}, "Version", "Applied", "Named")); diff != "" {
				t.Errorf("%s: Record (-want +got):\n%s", test.email, diff)
			}
		}
		for _, own := range []string{"joe@example.com", "Joe@Example.com"} {
			result, err := b.Service.Update(t.Context(), byID, "2", with(own, name("Joe")), nil)
			if err != nil || result.Member.Email != own || !result.Member.Subscribed {
				t.Errorf("its own email: %+v, %v", result.Member, err)
			}
		}
		b.SameOnPlatform("3@members.invalid ", "Joe@Example.com Joe", "jane@example.com ", "old@example.com ")
		if b.Pending() != 0 {
			t.Errorf("%d are pending", b.Pending())
		}
	})
}

// The rules of docs/members_api.md#placeholders.
func TestPlaceholderAddresses(t *testing.T) {
	long := fmt.Sprintf("%070d", 7)
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byEmail, with("jane@example.com"))
		for memberID, want := range map[string]string{
			"Crm_47-11":     "Crm_47-11@members.invalid",
			"a.b+c/d@e":     "a.b+c-d-e@members.invalid",
			".a..b.":        "-a.-b-@members.invalid",
			"ünïcode\u00a0": "-n-code-@members.invalid",
			long:            long[:64] + "@members.invalid",
		} {
			if got := b.Create(byID, with("jane@example.com", id(memberID))).Member; got.Email != want {
				t.Errorf("%q: %s, want %s", memberID, got.Email, want)
			}
		}
		// The GUID makes those unique that would be the same.
		for _, memberID := range []string{"A.b+C(d)E", long + "8"} {
			got := b.Create(byID, with("jane@example.com", id(memberID))).Member
			want := map[string]string{"A.b+C(d)E": "A.b+C-d-E-", long + "8": long[:27] + "-"}[memberID] + got.GUID + "@members.invalid"
			if got.Email != want {
				t.Errorf("%q: %s, want %s", memberID, got.Email, want)
			}
		}
	})
}
