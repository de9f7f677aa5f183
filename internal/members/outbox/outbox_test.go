package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
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

// An acknowledged write reaches a platform that was away, once.
func TestPlatformAway(t *testing.T) {
	for fault, failed := range map[string]error{
		"down":                       platformtest.ErrDown,
		"applies, but never answers": platformtest.Lost(context.DeadlineExceeded),
		"answers 500":                errors.New("Ghost answers 500"),
	} {
		t.Run(fault, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				ctx := t.Context()
				kept := b.Create(byEmail, with("kept@example.com"))
				gone := b.Create(byEmail, with("gone@example.com"))

				b.Platform.Fail(func(method, _ string) error {
					if method == "find" {
						return nil
					}
					return failed
				})
				results := []members.Result{b.Create(byEmail, with("new@example.com", name("New")))}
				for _, do := range []func() (members.Result, error){
					func() (members.Result, error) {
						return b.Service.Update(ctx, byEmail, "kept@example.com", with("renamed@example.com", name("Kept")), nil)
					},
					func() (members.Result, error) { return b.Service.Delete(ctx, byEmail, "gone@example.com", nil) },
					func() (members.Result, error) {
						return b.Service.Update(ctx, byEmail, "new@example.com", members.Fields{Name: new("Newer")}, nil)
					},
				} {
					result, err := do()
					if err != nil {
						t.Fatalf("do: %v", err)
					}
					results = append(results, result)
				}
				for i, result := range results {
					if !result.Queued {
						t.Errorf("write %d is not queued", i)
					}
				}
				if list, n, err := b.Work.Pending(ctx, membertest.Site, 2); err != nil || n[outbox.Kind] != 3 || len(list) != 2 || list[0].Reason == "" {
					t.Errorf("%v are pending: %+v, %v", n, list, err)
				}
				// Reads return the acknowledged writes meanwhile.
				if got, err := b.Service.Get(ctx, byEmail, "renamed@example.com"); err != nil || got.Member.GUID != kept.Member.GUID {
					t.Errorf("Get = %+v, %v, want no error, GUID %v", got, err, kept.Member.GUID)
				}
				if got, err := b.Service.Get(ctx, byEmail, "gone@example.com"); !errors.Is(err, members.ErrNotFound) {
					t.Errorf("%s is still there: %+v, %v", gone.Member.GUID, got, err)
				}

				b.Platform.Fix()
				b.CatchUp()
				b.SameOnPlatform("new@example.com Newer", "renamed@example.com Kept")
				if b.Pending() != 0 {
					t.Errorf("%d are pending", b.Pending())
				}
			})
		})
	}
}

// An email that a member no longer has can be taken at once, although the platform still
// has it.
func TestEmailHandedOn(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		b.Create(byEmail, with("a@example.com", name("first")))
		b.Create(byEmail, with("d@example.com", name("deleted")))
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Update(ctx, byEmail, "a@example.com", with("b@example.com"), nil); err != nil {
			t.Fatalf("b.Service.Update: %v", err)
		}
		if _, err := b.Service.Delete(ctx, byEmail, "d@example.com", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		b.Platform.Fix()
		for _, email := range []string{"a@example.com", "d@example.com"} {
			if result := b.Create(byEmail, with(email, name("second"))); !result.Queued {
				t.Errorf("%s is not queued, although the platform still has it", email)
			}
		}
		b.CatchUp()
		b.SameOnPlatform("a@example.com second", "b@example.com first", "d@example.com second")
	})
}

// A member that the platform had before is neither removed nor changed by a queued
// create and delete.
func TestExistingMembersAreLeftAlone(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com", Name: "Old", Status: "paid"}
		b.Platform.Break(platformtest.ErrDown)
		b.Create(byID, with("old@example.com", id("7")))
		if _, err := b.Service.Delete(t.Context(), byID, "7", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		b.Platform.Fix()
		b.CatchUp()
		b.SameOnPlatform("old@example.com Old")
	})
}

// A queued create may have the email of a member that the platform had before. Fields
// that the create does not name stay as the platform has them.
func TestCreatedWhileAway(t *testing.T) {
	strictByID := byID
	strictByID.Name, strictByID.DuplicateEmails = "strict", false
	for _, integration := range []members.Integration{byEmail, strictByID} {
		t.Run(integration.Name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				b.Platform.Members["p-old"] = platform.Member{
					ID: "p-old", Email: "old@example.com", Name: "Old", Note: "staff's", Labels: []string{"Founding"},
					Status: "paid", TierID: "prod_1", CreatedAt: b.Now, // so recent that the time does not tell them apart
				}
				b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
				b.Create(integration, with("old@example.com", id("8"), func(f *members.Fields) { f.Labels, f.Note = &[]string{"New"}, new("mine") }))
				b.Platform.Fix()
				b.CatchUp()
				want := platform.Member{
					ID: "p-old", Email: "old@example.com", Name: "Old", Note: "mine", Labels: []string{"New"}, Status: "paid", TierID: "prod_1",
				}
				if diff := cmp.Diff(want, b.Platform.Members["p-old"], cmpopts.IgnoreFields(platform.Member{}, "UUID", "CreatedAt")); diff != "" {
					t.Errorf("b.Platform.Members[\"p-old\"] (-want +got):\n%s", diff)
				}
				m, err := b.Store.Find(t.Context(), members.Key{Site: "daily", Email: "old@example.com"})
				if err != nil || m.Status != "paid" || *m.TierID != "prod_1" || m.PlatformID != "p-old" || b.Pending() != 0 {
					t.Errorf("%+v, %v, %d pending", m, err, b.Pending())
				}
			})
		})
	}
}

// Where duplicates are allowed, a member that is created while the platform is away becomes no one else's who was
// there all along, nor does its deletion delete them.
func TestDuplicateCreatedWhileAway(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		old := platform.Member{ID: "p-old", Email: "old@example.com", Name: "Old", Subscribed: true, CreatedAt: b.Now}
		other := platform.Member{ID: "p-other", Email: "9@members.invalid", Name: "Other", CreatedAt: b.Now}
		b.Platform.Members["p-old"], b.Platform.Members["p-other"] = old, other
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		b.Create(byID, with("old@example.com", id("8"), func(f *members.Fields) { f.Name, f.Subscribed = new("New"), new(true) }))
		b.Create(byID, with("old@example.com", id("9")))
		b.Platform.Fix()
		b.CatchUp()
		if diff := cmp.Diff([]platform.Member{old, other}, []platform.Member{b.Platform.Members["p-old"], b.Platform.Members["p-other"]}); diff != "" {
			t.Errorf("members that were there (-want +got):\n%s", diff)
		}
		for memberID, want := range map[string]*regexp.Regexp{"8": regexp.MustCompile(`^8@members\.invalid$`), "9": regexp.MustCompile(`^9-.{36}@members\.invalid$`)} {
			m, err := b.Store.Find(t.Context(), members.Key{Site: "daily", Integration: byID.Name, MemberID: memberID})
			if err != nil || !want.MatchString(m.Email) || m.Subscribed || m.IsPending() || b.Platform.Members[m.PlatformID].Email != m.Email || b.Platform.Members[m.PlatformID].Subscribed {
				t.Errorf("member %s: got %+v, %v, on the platform %+v, want the email %s, without newsletters", memberID, m, err, b.Platform.Members[m.PlatformID], want)
			}
			if _, err := b.Service.Delete(t.Context(), byID, memberID, nil); err != nil {
				t.Errorf("Delete %s: %v", memberID, err)
			}
		}
		if _, there := b.Platform.Members["p-old"]; !there || len(b.Platform.Members) != 2 {
			t.Errorf("after the duplicates were deleted: got %v, want the two that were there", b.Platform.Members)
		}
	})
}

// A member that staff deleted on the platform is not created again by an update.
func TestRemovedOnThePlatform(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		created := b.Create(byEmail, with("jane@example.com"))
		b.Platform.Mu.Lock()
		delete(b.Platform.Members, b.Record(created).PlatformID)
		b.Platform.Mu.Unlock()
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("x")}, nil); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("update: %v", err)
		}
		if _, err := b.Service.Get(t.Context(), byEmail, "jane@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("get: %v", err)
		}
		b.SameOnPlatform()
	})
}

func TestRunDeliversPendingWrites(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	o := b.NewOutbox(outbox.Config{Platform: membertest.Serve(map[string]platform.Platform{membertest.Site: b.Platform})})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	b.Platform.Break(platformtest.ErrDown)
	if result, err := b.Service.Create(ctx, byEmail, with("jane@example.com")); err != nil || !result.Queued {
		t.Fatalf("Create = %+v, %v, want no error, queued", result, err)
	}
	b.Platform.Fix()
	go func() {
		o.Work.Run(ctx)
		close(done)
	}()
	wait.Until(t, func() string {
		if n := b.Pending(); n > 0 {
			return fmt.Sprintf("%d are pending", n)
		}
		return ""
	})
	cancel()
	<-done
	b.SameOnPlatform("jane@example.com ")
}

// Members swap their emails in a circle while the platform is away. They do not block
// each other.
func TestEmailsInARing(t *testing.T) {
	for _, size := range []int{2, 3, 5} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				email := func(i int) string { return fmt.Sprintf("m%d@example.com", i) }
				rename := func(from, to string) {
					t.Helper()
					if _, err := b.Service.Update(t.Context(), byEmail, from, with(to), nil); err != nil {
						t.Fatalf("b.Service.Update: %v", err)
					}
				}
				var want []string
				for i := range size {
					b.Create(byEmail, with(email(i), name(strconv.Itoa(i))))
					want = append(want, fmt.Sprintf("m%d@example.com %d", i, (i+1)%size))
				}
				b.Platform.Break(platformtest.ErrDown)
				rename(email(0), "aside@example.com")
				for i := 1; i < size; i++ {
					rename(email(i), email(i-1))
				}
				rename("aside@example.com", email(size-1))
				b.Platform.Fix()
				for range size {
					b.CatchUp()
				}
				b.SameOnPlatform(want...)
				if b.Pending() != 0 {
					t.Errorf("%d are pending", b.Pending())
				}
			})
		})
	}
}

// slow is a platform that takes longer than a caller's timeout.
type slow struct {
	*platformtest.Platform
	takes time.Duration
}

func (p slow) Update(ctx context.Context, id string, c platform.Change) (platform.Member, error) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < p.takes {
		return platform.Member{}, context.DeadlineExceeded
	}
	return p.Platform.Update(ctx, id, c)
}

// A queued write reaches a platform that is slower than a caller's timeout.
func TestSlowPlatform(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Create(byEmail, with("jane@example.com", name("Before")))
	b.Edge = b.NewEdge(inbound.Site{Platform: slow{b.Platform, 8 * time.Second}}, 5*time.Second)
	result, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("After")}, nil)
	if err != nil || !result.Queued {
		t.Fatalf("Update = %+v, %v, want no error, queued", result, err)
	}
	b.CatchUp()
	b.SameOnPlatform("jane@example.com After")
	if b.Pending() != 0 {
		t.Errorf("%d are pending", b.Pending())
	}
}
