package members_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
)

// byStaff changes all that staff can change of a member, without a webhook event.
func byStaff(m *platform.Member) {
	m.Email, m.Name, m.Note, m.Labels = "staff@example.com", "staff's", "staff's", []string{"staff's"}
	m.Subscribed, m.Newsletters = false, []string{} // see TestUnsubscribedMeanwhile
}

// A write changes only the fields that it names. The others stay as staff left them,
// here and on the platform, whether the write was queued or not.
func TestOnlyWhatIsNamed(t *testing.T) {
	writes := []struct {
		name   string
		fields members.Fields
		want   func(*platform.Member) // changes the member as staff left it
	}{
		{"nothing", members.Fields{}, func(*platform.Member) {}},
		{"email", members.Fields{Email: new("crm@example.com")}, func(m *platform.Member) { m.Email = "crm@example.com" }},
		{"email, as it was", members.Fields{Email: new("jane@example.com")}, func(m *platform.Member) { m.Email = "jane@example.com" }},
		{"name", members.Fields{Name: new("crm's")}, func(m *platform.Member) { m.Name = "crm's" }},
		{"name, as it was", members.Fields{Name: new("Jane")}, func(m *platform.Member) { m.Name = "Jane" }},
		{"note", members.Fields{Note: new("crm's")}, func(m *platform.Member) { m.Note = "crm's" }},
		{"labels", members.Fields{Labels: &[]string{"crm's"}}, func(m *platform.Member) { m.Labels = []string{"crm's"} }},
		{"no labels", members.Fields{Labels: &[]string{}}, func(m *platform.Member) { m.Labels = nil }},
		{"subscribed", members.Fields{Subscribed: new(true)}, func(m *platform.Member) { m.Subscribed, m.Newsletters = true, nil }},
		{
			"newsletters",
			members.Fields{Newsletters: &[]members.Newsletter{{ID: "n1"}, {ID: "n2", Status: "inactive"}}},
			func(m *platform.Member) { m.Subscribed, m.Newsletters = true, []string{"n1"} },
		},
		{"the tier, which is ours", members.Fields{TierID: new(new("prod_1"))}, func(*platform.Member) {}},
	}
	for _, write := range writes {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, away %t", write.name, away), func(t *testing.T) {
				membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
					jane := b.Record(b.Create(byEmail, with("jane@example.com", name("Jane"), func(f *members.Fields) {
						f.Labels, f.Subscribed = &[]string{"VIP"}, new(false)
					})))
					if away {
						b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
					} else {
						b.Platform.EditMember(jane.PlatformID, byStaff)
					}
					result, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", write.fields, nil)
					if err != nil || result.Queued != away {
						t.Fatalf("Update = %+v, %v, want no error, queued %v", result, err, away)
					}
					if away {
						b.Platform.EditMember(jane.PlatformID, byStaff) // staff reach it by another way
						b.Platform.Fix()
						b.CatchUp()
					}
					want := platform.Member{ID: jane.PlatformID, Status: "free"}
					byStaff(&want)
					write.want(&want)
					created := cmpopts.IgnoreFields(platform.Member{}, "UUID", "CreatedAt")
					if diff := cmp.Diff(want, b.Platform.Members[jane.PlatformID], created, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("on the platform: %s", diff)
					}
					if diff := cmp.Diff(want, membertest.OnPlatform(b.Record(result)), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("here: %s", diff)
					}
					if b.Pending() != 0 {
						t.Errorf("%d are pending", b.Pending())
					}
					if !away { // the response has the member as it is stored
						if diff := cmp.Diff(b.Record(result).Member, result.Member, cmpopts.EquateEmpty()); diff != "" {
							t.Errorf("answered: %s", diff)
						}
					}
				})
			})
		}
	}
}

// Several queued writes are sent as one request, with all fields that they name.
func TestQueuedWritesAreOne(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		jane := b.Record(b.Create(byEmail, with("jane@example.com", name("Jane"))))
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		for _, f := range []members.Fields{{Name: new("1")}, {Name: new("2")}, {Labels: &[]string{"new"}}} {
			if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", f, nil); err != nil {
				t.Fatalf("b.Service.Update: %v", err)
			}
		}
		b.Platform.EditMember(jane.PlatformID, byStaff)
		var updates int
		b.Platform.Fail(func(method, _ string) error {
			if method == "update" {
				updates++
			}
			return nil
		})
		b.Edge = b.NewEdge(inbound.Site{Platform: b.Platform}, time.Minute) // pending writes outlive an edge
		b.CatchUp()
		want := platform.Member{ID: jane.PlatformID, Status: "free"}
		byStaff(&want)
		want.Name, want.Labels = "2", []string{"new"}
		if diff := cmp.Diff(want, b.Platform.Members[jane.PlatformID], cmpopts.IgnoreFields(platform.Member{}, "UUID", "CreatedAt")); diff != "" || updates != 1 {
			t.Errorf("after %d requests: %s", updates, diff)
		}
	})
}

// Changes by staff to a member with a pending write are stored at once, except for the
// pending fields.
func TestRefreshOfWhatIsNotPending(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		jane := b.Record(b.Create(byEmail, with("jane@example.com", name("Jane"))))
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("crm's")}, nil); err != nil {
			t.Fatalf("b.Service.Update: %v", err)
		}
		b.Platform.Fix()
		b.Platform.EditMember(jane.PlatformID, byStaff)
		b.Refresh(jane.PlatformID)
		want := platform.Member{ID: jane.PlatformID, Status: "free"}
		byStaff(&want)
		want.Name = "crm's"
		if diff := cmp.Diff(want, membertest.OnPlatform(b.Get("staff@example.com")), cmpopts.EquateEmpty()); diff != "" || b.Pending() != 1 {
			t.Errorf("%d are pending, %s", b.Pending(), diff)
		}
		b.CatchUp()
		b.SameOnPlatform("staff@example.com crm's")
	})
}

// A write that the platform refuses does not drop earlier pending writes.
func TestRefusedLeavesWhatIsPending(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		jane := b.Record(b.Create(byEmail, with("jane@example.com", name("Jane"))))
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("crm's")}, nil); err != nil {
			t.Fatalf("b.Service.Update: %v", err)
		}
		b.Platform.Fix()
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", with("refused@example.com"), nil); err == nil {
			t.Error("Update to refused@example.com: got no error, want one")
		}
		b.Platform.EditMember(jane.PlatformID, func(m *platform.Member) { m.Note = "staff's" })
		b.CatchUp()
		b.SameOnPlatform("jane@example.com crm's")
		if got := b.Get("jane@example.com"); got.Note != "staff's" {
			t.Errorf(`Get = %+v, want note "staff's"`, got)
		}
	})
}

// A member unsubscribes while a write is pending. The write subscribes them again only
// if it changes the subscription, not if it repeats the known one.
func TestUnsubscribedMeanwhile(t *testing.T) {
	n1 := []members.Newsletter{{ID: "n1"}}
	for _, test := range []struct {
		name   string
		before members.Fields // of the create
		write  members.Fields
		want   bool
	}{
		{"a write that repeats it", members.Fields{Subscribed: new(true)}, members.Fields{Name: new("New"), Subscribed: new(true)}, false},
		{"a write that repeats newsletters", members.Fields{Newsletters: &n1}, members.Fields{Newsletters: &n1}, false},
		{"a write that changes it", members.Fields{Subscribed: new(false)}, members.Fields{Subscribed: new(true)}, true},
		{"a write that changes newsletters", members.Fields{Subscribed: new(true)}, members.Fields{Newsletters: &n1}, true},
		{"a write that does not name it", members.Fields{Subscribed: new(true)}, members.Fields{Name: new("New")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				test.before.Email = new("jane@example.com")
				jane := b.Record(b.Create(byEmail, test.before))
				b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
				if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", test.write, nil); err != nil {
					t.Fatalf("b.Service.Update: %v", err)
				}
				// A later queued write does not restore the subscription.
				if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Note: new("n")}, nil); err != nil {
					t.Fatalf("b.Service.Update: %v", err)
				}
				b.Platform.EditMember(jane.PlatformID, func(m *platform.Member) { m.Subscribed, m.Newsletters = false, []string{} })
				b.Platform.Fix()
				b.CatchUp()
				there, here := b.Platform.Members[jane.PlatformID], b.Get("jane@example.com")
				if there.Subscribed != test.want || here.Subscribed != test.want || here.Note != "n" || b.Pending() != 0 {
					t.Errorf("subscribed %t there, and %+v here, want %t; %d are pending", there.Subscribed, here, test.want, b.Pending())
				}
			})
		})
	}
}

// An applied subscription is not applied once more a minute later, although an earlier
// attempt had no response.
func TestOnceMoreIsNoSubscription(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		jane := b.Record(b.Create(byEmail, with("jane@example.com", func(f *members.Fields) { f.Subscribed = new(false) })))
		b.Platform.LoseResponses(false)
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("New"), Subscribed: new(true)}, nil); err != nil {
			t.Fatalf("b.Service.Update: %v", err)
		}
		b.Platform.Fix()
		b.Now = b.Now.Add(2 * time.Second)
		b.DeliverDue()
		if m := b.Platform.Members[jane.PlatformID]; !m.Subscribed || m.Name != "New" || b.Pending() != 1 {
			t.Fatalf("%+v, %d pending", m, b.Pending())
		}
		b.Platform.EditMember(jane.PlatformID, func(m *platform.Member) { m.Subscribed = false })
		b.CatchUp()
		if m := b.Platform.Members[jane.PlatformID]; m.Subscribed || b.Get("jane@example.com").Subscribed || b.Pending() != 0 {
			t.Errorf("%+v, %d pending", m, b.Pending())
		}
	})
}

// A member that was deleted on the platform is deleted here, even if a queued write
// wants an email that another member has.
func TestGoneWithAnEmailThatIsTaken(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		jane := b.Record(b.Create(byEmail, with("jane@example.com")))
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", with("taken@example.com"), nil); err != nil {
			t.Fatalf("b.Service.Update: %v", err)
		}
		b.Platform.Fix()
		if err := b.Platform.Delete(t.Context(), jane.PlatformID); err != nil {
			t.Fatalf("b.Platform.Delete: %v", err)
		}
		b.Platform.EditMember("q-1", func(m *platform.Member) { m.Email, m.Status = "taken@example.com", "free" })
		b.CatchUp()
		got, err := b.Service.Get(t.Context(), byEmail, "taken@example.com")
		if err != nil || b.Get("taken@example.com").PlatformID != "q-1" || b.Pending() != 0 {
			t.Errorf("%+v, %v, %d pending", got, err, b.Pending())
		}
	})
}
