package outbox_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// changedThere is what a CRM is told of a queued write whose condition does not hold.
const changedThere = "The member was changed on the publishing platform since it was read. Read it again."

func labels(names ...string) members.Fields { return members.Fields{Labels: &names} }

// asRead is the condition that the member is as a CRM reads it now.
func asRead(t *testing.T, b *membertest.Bench) func(members.Member) bool {
	t.Helper()
	read, err := b.Service.Get(t.Context(), membertest.ByID, "1")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return func(m members.Member) bool { return cmp.Equal(read.Member, m) }
}

// conditional writes or deletes the member as the CRM has just read it.
func conditional(f *members.Fields) func(*testing.T, *membertest.Bench) error {
	return func(t *testing.T, b *membertest.Bench) error {
		match := asRead(t, b)
		if f == nil {
			_, err := b.Service.Delete(t.Context(), membertest.ByID, "1", match)
			return err
		}
		_, err := b.Service.Update(t.Context(), membertest.ByID, "1", *f, match)
		return err
	}
}

func unconditional(f members.Fields) func(*testing.T, *membertest.Bench) error {
	return func(t *testing.T, b *membertest.Bench) error {
		_, err := b.Service.Update(t.Context(), membertest.ByID, "1", f, nil)
		return err
	}
}

// A condition stays with a write that is queued: what staff have changed meanwhile is not undone,
// and the CRM is told.
func TestConditionOfAQueuedWrite(t *testing.T) {
	mine := labels("crm")
	byStaff := func(m *platform.Member) { m.Labels = []string{"crm-old", "staff"} }
	nothing := func(*platform.Member) {}
	for _, test := range []struct {
		name   string
		lost   bool // the writes take effect, and have no response
		writes []func(*testing.T, *membertest.Bench) error
		staff  func(*platform.Member)
		want   standing
		there  string // on the platform
	}{
		{
			"labels, which staff changed", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(&mine)},
			byStaff,
			standing{Fields: "jane@example.com Jane ", Refused: changedThere},
			"Jane [crm-old staff]",
		}, {
			"labels, while staff changed the note", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(&mine)},
			func(m *platform.Member) { m.Note = "staff" },
			standing{Fields: "jane@example.com Jane staff", Refused: changedThere},
			"Jane [crm-old]",
		}, {
			"labels, which nobody changed", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(&mine)},
			nothing,
			standing{Fields: "jane@example.com Jane "},
			"Jane [crm]",
		}, {
			"labels, which arrived", true,
			[]func(*testing.T, *membertest.Bench) error{conditional(&mine)},
			nothing,
			standing{Fields: "jane@example.com Jane "},
			"Jane [crm]",
		}, {
			"labels, which staff had changed to the same", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(&mine)},
			func(m *platform.Member) { m.Labels = []string{"crm"} },
			standing{Fields: "jane@example.com Jane "},
			"Jane [crm]",
		}, {
			"labels, and a name without a condition", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(&mine), unconditional(members.Fields{Name: new("New")})},
			byStaff,
			standing{Fields: "jane@example.com New ", Refused: changedThere},
			"New [crm-old staff]",
		}, {
			"a name without a condition, and labels", false,
			[]func(*testing.T, *membertest.Bench) error{unconditional(members.Fields{Name: new("New")}), conditional(&mine)},
			byStaff,
			standing{Fields: "jane@example.com New ", Refused: changedThere},
			"New [crm-old staff]",
		}, {
			"both with a condition", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(&members.Fields{Name: new("New")}), conditional(&mine)},
			nothing,
			standing{Fields: "jane@example.com New "},
			"New [crm]",
		}, {
			"a delete", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(nil)},
			byStaff,
			standing{Fields: "jane@example.com Jane ", Refused: changedThere},
			"Jane [crm-old staff]",
		}, {
			"labels, and a delete without a condition", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(&mine), func(t *testing.T, b *membertest.Bench) error {
				_, err := b.Service.Delete(t.Context(), membertest.ByID, "1", nil)
				return err
			}},
			byStaff,
			standing{Err: "reading a member: not found"},
			"",
		}, {
			"a name without a condition, and a delete", false,
			[]func(*testing.T, *membertest.Bench) error{unconditional(members.Fields{Name: new("New")}), conditional(nil)},
			byStaff,
			standing{Fields: "jane@example.com New ", Refused: changedThere},
			"New [crm-old staff]",
		}, {
			"a delete, and nobody changed anything", false,
			[]func(*testing.T, *membertest.Bench) error{conditional(nil)},
			nothing,
			standing{Err: "reading a member: not found"},
			"",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				b.Create(membertest.ByID, membertest.With("jane@example.com", membertest.ID("1"), membertest.Name("Jane"), func(f *members.Fields) { f.Labels = &[]string{"crm-old"} }))
				if b.Platform.Break(platformtest.ErrDown); test.lost {
					b.Platform.LoseResponses(true)
				}
				for _, write := range test.writes {
					if err := write(t, b); err != nil {
						t.Fatalf("error %v, want none", err)
					}
				}
				b.Platform.Fix()
				b.Platform.EditMember("p-1", test.staff)
				b.CatchUp()
				if diff := cmp.Diff(test.want, standingOf(t, b, membertest.ByID, "1")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got := there(b); got != test.there || b.Pending() != 0 {
					t.Errorf("on the platform: %q, %d pending, want %q, 0", got, b.Pending(), test.there)
				}
			})
		})
	}
}

// Who sends no condition is not refused for that of another write, which is still queued.
func TestConditionOfAnotherWrite(t *testing.T) {
	mine := labels("crm")
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(membertest.ByID, membertest.With("jane@example.com", membertest.ID("1"), membertest.Name("Jane")))
		b.Platform.Break(platformtest.ErrDown)
		if err := conditional(&mine)(t, b); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		b.Platform.Fix()
		b.Platform.EditMember("p-1", func(m *platform.Member) { m.Labels = []string{"staff"} })
		if err := unconditional(members.Fields{Name: new("New")})(t, b); err != nil {
			t.Errorf("error %v, want none", err)
		}
		b.CatchUp()
		want := standing{Fields: "jane@example.com New ", Refused: changedThere}
		if diff := cmp.Diff(want, standingOf(t, b, membertest.ByID, "1")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := there(b); got != "New [staff]" || b.Pending() != 0 {
			t.Errorf("on the platform: %q, %d pending, want New [staff], 0", got, b.Pending())
		}
	})
}

func there(b *membertest.Bench) string {
	var list []string
	for _, id := range b.Platform.IDs() {
		m := b.Platform.EditMember(id, func(*platform.Member) {})
		list = append(list, fmt.Sprint(m.Name, " ", m.Labels))
	}
	return strings.Join(list, ", ")
}

// Staff have changed the member, of which the platform has sent no event. The condition does not
// hold, and the next read has what they changed.
func TestConditionBesideAChangeWithoutEvent(t *testing.T) {
	mine := labels("crm", "staff")
	for name, write := range map[string]func(*testing.T, *membertest.Bench) error{"update": conditional(&mine), "delete": conditional(nil)} {
		t.Run(name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				b.Create(membertest.ByID, membertest.With("jane@example.com", membertest.ID("1"), membertest.Name("Jane")))
				b.Platform.EditMember("p-1", func(m *platform.Member) { m.Labels = []string{"staff"} })
				if err := write(t, b); !errors.Is(err, members.ErrPrecondition) {
					t.Errorf("got error %v, want %v", err, members.ErrPrecondition)
				}
				if got := there(b); got != "Jane [staff]" || b.Pending() != 0 {
					t.Errorf("on the platform: %q, %d pending, want %q, 0", got, b.Pending(), "Jane [staff]")
				}
				if err := write(t, b); err != nil {
					t.Errorf("once it was read again: error %v, want none", err)
				}
			})
		})
	}
}

// A condition counts for its own write only, also if the last release, which knows of none,
// applied that write and then queued another one.
func TestConditionOfAnAppliedWrite(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(membertest.ByID, membertest.With("jane@example.com", membertest.ID("1"), membertest.Name("Jane")))
		b.Platform.Break(platformtest.ErrDown)
		mine := labels("crm")
		if err := conditional(&mine)(t, b); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if _, err := b.DB.Write.ExecContext(t.Context(), "UPDATE members SET applied = version, named_name = version + 1, name = 'New', version = version + 1"); err != nil {
			t.Fatalf("UPDATE: %v", err)
		}
		b.Platform.Fix()
		b.Platform.EditMember("p-1", func(m *platform.Member) { m.Labels = []string{"staff"} })
		b.Now = b.Now.Add(time.Hour)
		b.CatchUp()
		if got := there(b); got != "New [staff]" || b.Pending() != 0 {
			t.Errorf("on the platform: %q, %d pending, want %q, 0", got, b.Pending(), "New [staff]")
		}
	})
}
