package members

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// byStaff changes all that staff can change of a member, without a word to us.
func byStaff(m *platform.Member) {
	m.Email, m.Name, m.Note, m.Labels = "staff@example.com", "staff's", "staff's", []string{"staff's"}
	m.Subscribed, m.Newsletters = false, []string{} // see TestUnsubscribedMeanwhile
}

// What a caller names is all that a write changes; everything else is as staff left
// it, on both sides, whether the platform could be reached at once or not.
func TestOnlyWhatIsNamed(t *testing.T) {
	writes := []struct {
		name   string
		fields Fields
		want   func(*platform.Member) // of what staff made of it
	}{
		{"nothing", Fields{}, func(*platform.Member) {}},
		{"email", Fields{Email: new("crm@example.com")}, func(m *platform.Member) { m.Email = "crm@example.com" }},
		{"email, as it was", Fields{Email: new("jane@example.com")}, func(m *platform.Member) { m.Email = "jane@example.com" }},
		{"name", Fields{Name: new("crm's")}, func(m *platform.Member) { m.Name = "crm's" }},
		{"name, as it was", Fields{Name: new("Jane")}, func(m *platform.Member) { m.Name = "Jane" }},
		{"note", Fields{Note: new("crm's")}, func(m *platform.Member) { m.Note = "crm's" }},
		{"labels", Fields{Labels: &[]string{"crm's"}}, func(m *platform.Member) { m.Labels = []string{"crm's"} }},
		{"no labels", Fields{Labels: &[]string{}}, func(m *platform.Member) { m.Labels = nil }},
		{"subscribed", Fields{Subscribed: new(true)}, func(m *platform.Member) { m.Subscribed, m.Newsletters = true, nil }},
		{
			"newsletters",
			Fields{Newsletters: &[]memberstore.Newsletter{{ID: "n1"}, {ID: "n2", Status: "inactive"}}},
			func(m *platform.Member) { m.Subscribed, m.Newsletters = true, []string{"n1"} },
		},
		{"the tier, which is ours", Fields{TierID: new(new("prod_1"))}, func(*platform.Member) {}},
	}
	for _, write := range writes {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, away %t", write.name, away), func(t *testing.T) {
				eachStore(t, func(t *testing.T, b *bench) {
					jane := b.create(byEmail, with("jane@example.com", name("Jane"), func(f *Fields) {
						f.Labels, f.Subscribed = &[]string{"VIP"}, new(false)
					})).Member
					if away {
						b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
					} else {
						b.platform.staff(jane.PlatformID, byStaff)
					}
					result, err := b.service.Update(t.Context(), byEmail, "jane@example.com", write.fields, nil)
					if err != nil || result.Queued != away {
						t.Fatalf("%+v, %v", result, err)
					}
					if away {
						b.platform.staff(jane.PlatformID, byStaff) // who reach it by another way
						b.platform.mend()
						b.catchUp()
					}
					want := platform.Member{ID: jane.PlatformID, Status: "free"}
					byStaff(&want)
					write.want(&want)
					created := cmpopts.IgnoreFields(platform.Member{}, "CreatedAt")
					if diff := cmp.Diff(want, b.platform.members[jane.PlatformID], created, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("on the platform: %s", diff)
					}
					got, err := b.service.GetByGUID(t.Context(), jane.GUID)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, asPlatform(got), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("here: %s", diff)
					}
					if b.behind() != 0 {
						t.Errorf("%d are behind", b.behind())
					}
					if !away { // and so the caller was told
						if diff := cmp.Diff(want, asPlatform(result.Member), cmpopts.EquateEmpty()); diff != "" {
							t.Errorf("answered: %s", diff)
						}
					}
				})
			})
		}
	}
}

// asPlatform returns a member as the platform should have it.
func asPlatform(m memberstore.Member) platform.Member {
	p := toPlatform(m)
	p.ID, p.Status = m.PlatformID, m.Status
	return p
}

// Several writes that are queued are one request, of all that they named.
func TestQueuedWritesAreOne(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		jane := b.create(byEmail, with("jane@example.com", name("Jane"))).Member
		b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
		for _, f := range []Fields{{Name: new("1")}, {Name: new("2")}, {Labels: &[]string{"new"}}} {
			if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", f, nil); err != nil {
				t.Fatal(err)
			}
		}
		b.platform.staff(jane.PlatformID, byStaff)
		var updates int
		b.platform.set(func(method string) error {
			if method == "update" {
				updates++
			}
			return nil
		}, true)
		b.service = b.edge(b.platform) // what is pending outlives an edge
		b.catchUp()
		want := platform.Member{ID: jane.PlatformID, Status: "free"}
		byStaff(&want)
		want.Name, want.Labels = "2", []string{"new"}
		if diff := cmp.Diff(want, b.platform.members[jane.PlatformID], cmpopts.IgnoreFields(platform.Member{}, "CreatedAt")); diff != "" || updates != 1 {
			t.Errorf("after %d requests: %s", updates, diff)
		}
	})
}

// What staff change of a member who is behind is seen at once, but for what is
// pending.
func TestRefreshOfWhatIsNotPending(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		jane := b.create(byEmail, with("jane@example.com", name("Jane"))).Member
		b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("crm's")}, nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		b.platform.staff(jane.PlatformID, byStaff)
		b.refresh(jane.PlatformID)
		want := platform.Member{ID: jane.PlatformID, Status: "free"}
		byStaff(&want)
		want.Name = "crm's"
		if diff := cmp.Diff(want, asPlatform(b.get("staff@example.com")), cmpopts.EquateEmpty()); diff != "" || b.behind() != 1 {
			t.Errorf("%d are behind, %s", b.behind(), diff)
		}
		b.catchUp()
		b.sameAsPlatform("staff@example.com crm's")
	})
}

// A write that the platform refuses leaves what was pending before it.
func TestRefusedLeavesWhatIsPending(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		jane := b.create(byEmail, with("jane@example.com", name("Jane"))).Member
		b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("crm's")}, nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", with("refused@example.com"), nil); err == nil {
			t.Error("it is not refused")
		}
		b.platform.staff(jane.PlatformID, func(m *platform.Member) { m.Note = "staff's" })
		b.catchUp()
		b.sameAsPlatform("jane@example.com crm's")
		if got := b.get("jane@example.com"); got.Note != "staff's" {
			t.Errorf("%+v", got)
		}
	})
}

// Whoever unsubscribes while a write waits is subscribed again only if that was a
// change to subscribe them, and not if it repeated what was known.
func TestUnsubscribedMeanwhile(t *testing.T) {
	n1 := []memberstore.Newsletter{{ID: "n1"}}
	for _, test := range []struct {
		name   string
		before Fields // of the create
		write  Fields
		want   bool
	}{
		{"a write that repeats it", Fields{Subscribed: new(true)}, Fields{Name: new("New"), Subscribed: new(true)}, false},
		{"a write that repeats newsletters", Fields{Newsletters: &n1}, Fields{Newsletters: &n1}, false},
		{"a write that changes it", Fields{Subscribed: new(false)}, Fields{Subscribed: new(true)}, true},
		{"a write that changes newsletters", Fields{Subscribed: new(true)}, Fields{Newsletters: &n1}, true},
		{"a write that does not name it", Fields{Subscribed: new(true)}, Fields{Name: new("New")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, b *bench) {
				test.before.Email = new("jane@example.com")
				jane := b.create(byEmail, test.before).Member
				b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
				if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", test.write, nil); err != nil {
					t.Fatal(err)
				}
				// What is queued after it does not bring it back.
				if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Note: new("n")}, nil); err != nil {
					t.Fatal(err)
				}
				b.platform.staff(jane.PlatformID, func(m *platform.Member) { m.Subscribed, m.Newsletters = false, []string{} })
				b.platform.mend()
				b.catchUp()
				there, here := b.platform.members[jane.PlatformID], b.get("jane@example.com")
				if there.Subscribed != test.want || here.Subscribed != test.want || here.Note != "n" || b.behind() != 0 {
					t.Errorf("subscribed %t there, and %+v here, want %t; %d are behind", there.Subscribed, here, test.want, b.behind())
				}
			})
		})
	}
}

// A subscription that was brought to the platform is not brought there once more, a
// minute later, because an attempt before had no answer.
func TestOnceMoreIsNoSubscription(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		jane := b.create(byEmail, with("jane@example.com", func(f *Fields) { f.Subscribed = new(false) })).Member
		b.platform.loseAnswers(false)
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("New"), Subscribed: new(true)}, nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		b.now = b.now.Add(2 * time.Second)
		if err := b.service.catchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := b.platform.members[jane.PlatformID]; !m.Subscribed || m.Name != "New" || b.behind() != 1 {
			t.Fatalf("%+v, %d behind", m, b.behind())
		}
		b.platform.staff(jane.PlatformID, func(m *platform.Member) { m.Subscribed = false })
		b.catchUp()
		if m := b.platform.members[jane.PlatformID]; m.Subscribed || b.get("jane@example.com").Subscribed || b.behind() != 0 {
			t.Errorf("%+v, %d behind", m, b.behind())
		}
	})
}

// A member who has gone from the platform is gone here, even if a queued write wants an
// email that another has.
func TestGoneWithAnEmailThatIsTaken(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		jane := b.create(byEmail, with("jane@example.com")).Member
		b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", with("taken@example.com"), nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		if err := b.platform.Delete(t.Context(), jane.PlatformID); err != nil {
			t.Fatal(err)
		}
		b.platform.staff("q-1", func(m *platform.Member) { m.Email, m.Status = "taken@example.com", "free" })
		b.catchUp()
		got, err := b.service.Get(t.Context(), byEmail, "taken@example.com")
		if err != nil || got.PlatformID != "q-1" || b.behind() != 0 {
			t.Errorf("%+v, %v, %d behind", got, err, b.behind())
		}
	})
}
