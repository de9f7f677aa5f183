package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// disliked is why the bench's platform refuses a note.
const disliked = "Ghost does not like it."

func note(text string) func(*members.Fields) { return func(f *members.Fields) { f.Note = &text } }

// standing is what a CRM learns of a member.
type standing struct {
	Fields, Refused string // of a member
	Queued          bool
	Err             string // instead of one
}

func standingOf(t *testing.T, b *membertest.Bench, i members.Integration, identifier string) standing {
	t.Helper()
	result, err := b.Service.Get(t.Context(), i, identifier)
	if err != nil {
		return standing{Err: err.Error()}
	}
	m := result.Member
	return standing{Fields: m.Email + " " + m.Name + " " + m.Note, Refused: result.Refused, Queued: result.Queued}
}

// Writes that are refused after they were queued: those that the platform takes are
// applied, the others are not tried again, the record is as the platform has the member,
// and the CRM can see why.
func TestRefusedAfterItWasQueued(t *testing.T) {
	update := func(f members.Fields) func(*members.Service, *testing.T) {
		return func(s *members.Service, t *testing.T) {
			if result, err := s.Update(t.Context(), membertest.ByID, "1", f, nil); err != nil || !result.Queued {
				t.Fatalf("Update = %+v, %v, want no error, queued", result, err)
			}
		}
	}
	create := func(f members.Fields) func(*members.Service, *testing.T) {
		return func(s *members.Service, t *testing.T) {
			membertest.ID("1")(&f)
			if result, err := s.Create(t.Context(), membertest.ByID, f); err != nil || !result.Queued {
				t.Fatalf("Create = %+v, %v, want no error, queued", result, err)
			}
		}
	}
	var bad, good, none members.Fields
	note("refused")(&bad)
	note("fine")(&good)
	named := members.Fields{Name: new("New")}
	badAndNamed := bad
	badAndNamed.Name = new("New")
	const gone = "reading a member: not found: the platform refused the member: " + disliked
	for _, test := range []struct {
		name   string
		isNew  bool // the member, who else is there as "jane@example.com Jane before"
		writes []func(*members.Service, *testing.T)
		want   standing
		there  []string // on the platform
	}{
		{
			"an update", false,
			[]func(*members.Service, *testing.T){update(badAndNamed)},
			standing{Fields: "jane@example.com Jane before", Refused: disliked},
			[]string{"jane@example.com Jane"},
		}, {
			"one of two updates", false,
			[]func(*members.Service, *testing.T){update(bad), update(named)},
			standing{Fields: "jane@example.com New before", Refused: disliked},
			[]string{"jane@example.com New"},
		}, {
			"the other of two updates", false,
			[]func(*members.Service, *testing.T){update(named), update(bad)},
			standing{Fields: "jane@example.com New before", Refused: disliked},
			[]string{"jane@example.com New"},
		}, {
			"corrected before it was sent", false,
			[]func(*members.Service, *testing.T){update(bad), update(good)},
			standing{Fields: "jane@example.com Jane fine"},
			[]string{"jane@example.com Jane"},
		}, {
			"an email that another member has", false,
			[]func(*members.Service, *testing.T){update(membertest.With("old@example.com")), update(named)},
			standing{Fields: "jane@example.com New before", Refused: members.EmailTaken},
			[]string{"jane@example.com New"},
		}, {
			"a create", true,
			[]func(*members.Service, *testing.T){create(membertest.With("new@example.com", note("refused")))},
			standing{Err: gone},
			[]string{},
		}, {
			"a create, and an update", true,
			[]func(*members.Service, *testing.T){create(membertest.With("new@example.com", note("refused"))), update(named)},
			standing{Err: gone},
			[]string{},
		}, {
			"an update of a create", true,
			[]func(*members.Service, *testing.T){create(membertest.With("new@example.com", membertest.Name("First"))), update(bad), update(none)},
			standing{Fields: "new@example.com First ", Refused: disliked},
			[]string{"new@example.com First"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com"}
				if !test.isNew {
					b.Create(membertest.ByID, membertest.With("jane@example.com", membertest.ID("1"), membertest.Name("Jane"), note("before")))
				}
				b.Platform.Break(platform.ErrNoEffect)
				for _, write := range test.writes {
					write(b.Service, t)
				}
				b.Platform.Fix()
				b.CatchUp()
				tries := 0
				b.Platform.Fail(func(string, string) error { tries++; return nil })
				b.CatchUp()
				if tries != 0 || b.Pending() != 0 {
					t.Errorf("%d requests afterwards, %d pending, want none", tries, b.Pending())
				}
				b.Platform.Fix()
				if diff := cmp.Diff(test.want, standingOf(t, b, membertest.ByID, "1")); diff != "" {
					t.Errorf("standingOf (-want +got):\n%s", diff)
				}
				b.SameOnPlatform(append(test.there, "old@example.com ")...)
			})
		})
	}
}

// What was refused is not sent again because an attempt before had no response: with the fields that it was refused
// for left out, it would be half of a write.
func TestRefusedAfterNoAnswer(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(membertest.ByEmail, membertest.With("jane@example.com"))
		b.Platform.LoseResponses(false)
		if _, err := b.Service.Update(t.Context(), membertest.ByEmail, "jane@example.com", members.Fields{Name: new("New"), Note: new("refused")}, nil); err != nil {
			t.Fatalf("b.Service.Update: %v", err)
		}
		b.Platform.Fix()
		b.Now = b.Now.Add(arrivalTime / 2)
		b.DeliverDue()
		if diff := cmp.Diff(standing{Fields: "jane@example.com  ", Refused: disliked}, standingOf(t, b, membertest.ByEmail, "jane@example.com")); diff != "" {
			t.Errorf("standingOf (-want +got):\n%s", diff)
		}
		if b.Pending() != 0 {
			t.Errorf("%d are pending, want none", b.Pending())
		}
		b.CatchUp()
		b.SameOnPlatform("jane@example.com ")
	})
}

// A read says that a write is queued, and that it was refused until the next write.
func TestStandingOfWrites(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		check := func(step string, want standing) {
			t.Helper()
			if diff := cmp.Diff(want, standingOf(t, b, membertest.ByEmail, "jane@example.com")); diff != "" {
				t.Errorf("%s: standingOf (-want +got):\n%s", step, diff)
			}
		}
		write := func(f members.Fields) error {
			_, err := b.Service.Update(t.Context(), membertest.ByEmail, "jane@example.com", f, nil)
			return err
		}
		b.Create(membertest.ByEmail, membertest.With("jane@example.com"))
		check("created", standing{Fields: "jane@example.com  "})
		b.Platform.Break(platform.ErrNoEffect)
		refused := members.Fields{Note: new("refused")}
		if err := write(refused); err != nil {
			t.Fatalf("write: %v", err)
		}
		check("queued", standing{Fields: "jane@example.com  refused", Queued: true})
		b.Platform.Fix()
		b.CatchUp()
		after := standing{Fields: "jane@example.com  ", Refused: disliked}
		check("refused", after)
		// What staff change, and a write that is refused at once, leave the reason.
		b.Platform.EditMember(b.Get("jane@example.com").PlatformID, func(m *platform.Member) { m.Name = "Jane" })
		b.Refresh(b.Get("jane@example.com").PlatformID)
		after.Fields = "jane@example.com Jane "
		check("changed by staff", after)
		if err := write(refused); err == nil {
			t.Error("write: got no error, want it refused")
		}
		check("refused once more", after)
		if err := write(members.Fields{Note: new("fine")}); err != nil {
			t.Fatalf("write: %v", err)
		}
		check("after the next write", standing{Fields: "jane@example.com Jane fine"})
	})
}

// A member whose create was refused is not there, and in nobody's way.
func TestRefusedCreate(t *testing.T) {
	isRefused := func(err error) bool {
		_, ok := errors.AsType[*members.RefusedError](err)
		return ok && errors.Is(err, members.ErrNotFound)
	}
	refuse := func(t *testing.T, b *membertest.Bench) members.Result {
		t.Helper()
		b.Platform.Break(platform.ErrNoEffect)
		created := b.Create(membertest.ByID, membertest.With("jane@example.com", membertest.ID("1"), note("refused")))
		b.Platform.Fix()
		b.CatchUp()
		for i, identifier := range map[*members.Integration]string{&membertest.ByID: "1", &membertest.ByEmail: "Jane@example.com"} {
			if _, err := b.Service.Get(t.Context(), *i, identifier); !isRefused(err) {
				t.Errorf("%s: Get = %v, want a *members.RefusedError", identifier, err)
			}
		}
		return created
	}
	afresh := func(t *testing.T, b *membertest.Bench) {
		t.Helper()
		for i, identifier := range map[*members.Integration]string{&membertest.ByID: "1", &membertest.ByEmail: "jane@example.com"} {
			if _, err := b.Service.Delete(t.Context(), *i, identifier, nil); err != nil && !errors.Is(err, members.ErrNotFound) {
				t.Errorf("Delete of %s: got %v, want no error or %v", identifier, err, members.ErrNotFound)
			}
			if _, err := b.Service.Get(t.Context(), *i, identifier); isRefused(err) || !errors.Is(err, members.ErrNotFound) {
				t.Errorf("%s after it was deleted: %v", identifier, err)
			}
		}
	}
	byID := membertest.ByID
	for name, then := range map[string]func(t *testing.T, b *membertest.Bench){
		"created again": func(t *testing.T, b *membertest.Bench) {
			again := b.Create(byID, membertest.With("jane@example.com", membertest.ID("1")))
			if again.Refused != "" || again.Member.Email != "jane@example.com" {
				t.Errorf(`Create = %+v, want no refused, email "jane@example.com"`, again)
			}
			b.SameOnPlatform("jane@example.com ")
		},
		"created with another email": func(t *testing.T, b *membertest.Bench) {
			b.Create(byID, membertest.With("other@example.com", membertest.ID("1")))
			b.SameOnPlatform("other@example.com ")
		},
		"its email is another's now": func(t *testing.T, b *membertest.Bench) {
			b.Create(byID, membertest.With("joe@example.com", membertest.ID("2")))
			if _, err := b.Service.Update(t.Context(), byID, "2", membertest.With("jane@example.com"), nil); err != nil {
				t.Errorf("b.Service.Update: %v", err)
			}
			b.SameOnPlatform("jane@example.com ")
		},
		"staff created it": func(t *testing.T, b *membertest.Bench) {
			b.Platform.Members["q-1"] = platform.Member{ID: "q-1", Email: "jane@example.com", Name: "Staff's"}
			b.Refresh("q-1")
			if diff := cmp.Diff(standing{Fields: "jane@example.com Staff's "}, standingOf(t, b, membertest.ByEmail, "jane@example.com")); diff != "" {
				t.Errorf("standingOf (-want +got):\n%s", diff)
			}
		},
		"staff created it, which nobody has told": func(t *testing.T, b *membertest.Bench) {
			b.Platform.Members["q-1"] = platform.Member{ID: "q-1", Email: "jane@example.com", Name: "Staff's"}
			if diff := cmp.Diff(standing{Fields: "jane@example.com Staff's "}, standingOf(t, b, membertest.ByEmail, "jane@example.com")); diff != "" {
				t.Errorf("standingOf (-want +got):\n%s", diff)
			}
		},
		"changed": func(t *testing.T, b *membertest.Bench) {
			if _, err := b.Service.Update(t.Context(), byID, "1", members.Fields{Name: new("New")}, nil); !isRefused(err) {
				t.Errorf("Update = %v, want a *members.RefusedError", err)
			}
			b.SameOnPlatform()
		},
		"deleted": func(t *testing.T, b *membertest.Bench) {
			if _, err := b.Service.Delete(t.Context(), byID, "1", nil); !isRefused(err) {
				t.Errorf("Delete = %v, want a *members.RefusedError", err)
			}
		},
		"a week later": func(t *testing.T, b *membertest.Bench) {
			b.Purge()
			if _, err := b.Service.Get(t.Context(), byID, "1"); !isRefused(err) {
				t.Errorf("before: %v", err)
			}
			b.Now = b.Now.Add(members.RefusalRetention)
			b.Purge()
		},
	} {
		t.Run(name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				refused := refuse(t, b)
				list, err := b.Work.Refused(t.Context(), membertest.Site, 10)
				want := []work.Task{{Site: membertest.Site, Kind: outbox.Kind, Key: refused.Member.GUID, Title: "jane@example.com", Reason: disliked}}
				if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(work.Task{}, "Revision", "Since")); diff != "" || err != nil {
					t.Errorf("Refused: error %v, want none (-want +got):\n%s", err, diff)
				}
				for m := range b.Store.All(t.Context(), membertest.Site, "") {
					t.Errorf("%s is exported", m.GUID)
				}
				then(t, b)
				afresh(t, b)
			})
		})
	}
}

// An update of a queued create whose email the platform's own member has is queued, and not refused
// for the email, if the platform does not answer in the middle of it.
func TestUpdateWhileATakenEmailIsUnsettled(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com", Name: "Old", CreatedAt: b.Now.Add(-time.Hour)}
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		b.Create(byEmail, with("old@example.com", name("New")))
		finds := 0
		b.Platform.Fail(func(call, _ string) error {
			if call != "find" {
				return nil
			}
			if finds++; finds > 1 {
				return platformtest.ErrDown
			}
			return nil
		})
		text := "n"
		if r, err := b.Service.Update(t.Context(), byEmail, "old@example.com", members.Fields{Note: &text}, nil); err != nil || !r.Queued {
			t.Errorf("update: queued %t, %v, want queued", r.Queued, err)
		}
		b.Platform.Fix()
		b.CatchUp()
		if got := b.Platform.Members["p-old"]; got.Name != "New" || got.Note != "n" {
			t.Errorf("on the platform: %+v, want both writes", got)
		}
	})
}

// Of a member who was deleted, nothing is left that says who it was (docs/guarantees.md).
func TestDeletedLeavesNoMemberID(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byID, with("jane@example.com", id("Jane.Doe-1970")))
		if _, err := b.Service.Delete(t.Context(), byID, "Jane.Doe-1970", nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		var placeholders []string
		rows, err := b.DB.Read.QueryContext(t.Context(), "SELECT placeholder FROM members")
		if err != nil {
			t.Fatalf("QueryContext: %v", err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatalf("Scan: %v", err)
			}
			placeholders = append(placeholders, text)
		}
		if !slices.Equal(placeholders, []string{""}) {
			t.Errorf("placeholders in the store: %q (%v), want one that is empty", placeholders, rows.Err())
		}
	})
}
