package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/membertest"
	"github.com/lychgate/caddy-lychgate/internal/wait"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/members/outbox"
	"github.com/lychgate/caddy-lychgate/platform"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

var (
	byEmail, byID  = membertest.ByEmail, membertest.ByID
	with, name, id = membertest.With, membertest.Name, membertest.ID
)

// arrivalTime is how long an attempt without an answer may take to take effect
// (docs/guarantees.md#a-write).
const arrivalTime = time.Minute

// What is acknowledged reaches a platform that was away, and only once.
func TestPlatformAway(t *testing.T) {
	faults := map[string]struct {
		err   error
		after bool
	}{
		"down":                          {membertest.ErrDown, false},
		"applies, but never answers":    {context.DeadlineExceeded, true},
		"says nothing about the member": {errors.New("Ghost answers 500"), false},
	}
	for fault, how := range faults {
		t.Run(fault, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				ctx := t.Context()
				kept := b.Create(byEmail, with("kept@example.com"))
				gone := b.Create(byEmail, with("gone@example.com"))

				b.Platform.Set(func(method string) error {
					if method == "find" {
						return nil
					}
					return how.err
				}, how.after)
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
						t.Fatal(err)
					}
					results = append(results, result)
				}
				for i, result := range results {
					if !result.Queued {
						t.Errorf("write %d is not queued", i)
					}
				}
				if list, n, err := b.Outbox.Pending(ctx, membertest.Site, 2); err != nil || n != 3 || len(list) != 2 || list[0].Problem == "" {
					t.Errorf("%d are behind: %+v, %v", n, list, err)
				}
				// Reads answer what was acknowledged meanwhile.
				if got, err := b.Service.Get(ctx, byEmail, "renamed@example.com"); err != nil || got.GUID != kept.Member.GUID {
					t.Errorf("%+v, %v", got, err)
				}
				if got, err := b.Service.Get(ctx, byEmail, "gone@example.com"); !errors.Is(err, members.ErrNotFound) {
					t.Errorf("%s is still there: %+v, %v", gone.Member.GUID, got, err)
				}

				b.Platform.Mend()
				b.CatchUp()
				b.SameOnPlatform("new@example.com Newer", "renamed@example.com Kept")
				if b.Pending() != 0 {
					t.Errorf("%d are behind", b.Pending())
				}
			})
		})
	}
}

// An email that was let go of can be taken at once, in whatever order the
// platform gets to know.
func TestEmailHandedOn(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		b.Create(byEmail, with("a@example.com", name("first")))
		b.Create(byEmail, with("d@example.com", name("deleted")))
		b.Platform.Break(membertest.ErrDown)
		if _, err := b.Service.Update(ctx, byEmail, "a@example.com", with("b@example.com"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Service.Delete(ctx, byEmail, "d@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.Platform.Mend()
		for _, email := range []string{"a@example.com", "d@example.com"} {
			if result := b.Create(byEmail, with(email, name("second"))); !result.Queued {
				t.Errorf("%s is not queued behind the one who lets go of it", email)
			}
		}
		b.CatchUp()
		b.SameOnPlatform("a@example.com second", "b@example.com first", "d@example.com second")
	})
}

// Deleted and made again while the platform was away: the two may arrive in any
// order, and the new one must not go with the old.
func TestDeletedAndMadeAgain(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		old := b.Record(b.Create(byEmail, with("e@example.com", name("old"))))
		b.Platform.Break(membertest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.Create(byEmail, with("e@example.com", name("new")))
		// Another edge removes the old one: it is noted here, and the platform
		// has it until the new one's email was found to be taken.
		old.Applied = 2
		if _, err := b.Store.MarkApplied(t.Context(), old, "other edge"); err != nil {
			t.Fatal(err)
		}
		looks := 0
		b.Platform.Set(func(method string) error {
			if method == "find" {
				if looks++; looks == 2 {
					clear(b.Platform.Members)
				}
			}
			return nil
		}, false)
		b.CatchUp()
		b.Platform.Mend()
		b.CatchUp()
		b.SameOnPlatform("e@example.com new")
	})
}

// A member who is read while another edge removes it does not come back.
func TestDeletedWhileItIsRead(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		old := b.Record(b.Create(byEmail, with("e@example.com")))
		b.Platform.Break(membertest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.Platform.Set(func(method string) error {
			if method == "find" { // the last answer before the other edge is done
				old.Applied = 2
				_, err := b.Store.MarkApplied(t.Context(), old, "other edge")
				return err
			}
			return nil
		}, false)
		if got, err := b.Service.Get(t.Context(), byEmail, "e@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A member who was deleted before the platform's answer arrived stays deleted.
func TestDeletedBeforeItWasAnswered(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.LoseAnswers(true)
		b.Create(byEmail, with("e@example.com"))
		b.Platform.Break(membertest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.Platform.Mend()
		if m, err := b.Service.Get(t.Context(), byEmail, "e@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("%+v, %v", m, err)
		}
		b.CatchUp()
		b.SameOnPlatform()
	})
}

// Whoever the platform had before is nobody's to remove or to change.
func TestStrangersAreLeftAlone(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com", Name: "Old", Status: "paid"}
		b.Platform.Break(membertest.ErrDown)
		b.Create(byID, with("old@example.com", id("7")))
		if _, err := b.Service.Delete(t.Context(), byID, "7", nil); err != nil {
			t.Fatal(err)
		}
		b.Platform.Mend()
		b.CatchUp()
		b.SameOnPlatform("old@example.com Old")
	})
}

// A create that was acknowledged while the platform was away can turn out to be
// of somebody whom it had all along. Nothing that is known of them is lost.
func TestCreatedWhileAway(t *testing.T) {
	for _, integration := range []members.Integration{byEmail, byID} {
		t.Run(integration.Name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				b.Platform.Members["p-old"] = platform.Member{
					ID: "p-old", Email: "old@example.com", Name: "Old", Note: "staff's", Labels: []string{"Founding"},
					Status: "paid", TierID: "prod_1", CreatedAt: b.Now, // just before, so not told apart by that
				}
				b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
				b.Create(integration, with("old@example.com", id("8"), func(f *members.Fields) { f.Labels, f.Note = &[]string{"New"}, new("mine") }))
				b.Platform.Mend()
				b.CatchUp()
				want := platform.Member{
					ID: "p-old", Email: "old@example.com", Name: "Old", Note: "mine", Labels: []string{"New"}, Status: "paid", TierID: "prod_1",
				}
				if diff := cmp.Diff(want, b.Platform.Members["p-old"], cmpopts.IgnoreFields(platform.Member{}, "CreatedAt")); diff != "" {
					t.Error(diff)
				}
				m, err := b.Store.Find(t.Context(), members.Key{Site: "daily", Email: "old@example.com"})
				if err != nil || m.Status != "paid" || *m.TierID != "prod_1" || m.PlatformID != "p-old" || b.Pending() != 0 {
					t.Errorf("%+v, %v, %d behind", m, err, b.Pending())
				}
			})
		})
	}
}

// Staff who remove a member on the platform have the last word.
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

func TestRun(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	o := outbox.New(outbox.Config{Store: b.Store, Platforms: map[string]platform.Platform{membertest.Site: b.Platform}, Logger: zap.NewNop()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	b.Platform.Break(membertest.ErrDown)
	if result, err := b.Service.Create(ctx, byEmail, with("jane@example.com")); err != nil || !result.Queued {
		t.Fatalf("%+v, %v", result, err)
	}
	b.Platform.Mend()
	go func() {
		o.Run(ctx)
		close(done)
	}()
	wait.Until(t, func() string {
		if n := b.Pending(); n > 0 {
			return fmt.Sprintf("%d are behind", n)
		}
		return ""
	})
	cancel()
	<-done
	b.SameOnPlatform("jane@example.com ")
}

// A create that had no answer arrived under its first email. The member is not
// made a second time under the one that it was given meanwhile.
func TestRenamedBeforeItWasAnswered(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.LoseAnswers(true)
		b.Create(byEmail, with("first@example.com"))
		b.Platform.Break(membertest.ErrDown)
		if _, err := b.Service.Update(t.Context(), byEmail, "first@example.com", with("second@example.com"), nil); err != nil {
			t.Fatal(err)
		}
		b.Platform.Mend()
		// Nobody else is taken for it, nor can take it for themselves.
		b.Create(byEmail, with("first@example.com", name("other")))
		b.CatchUp()
		b.SameOnPlatform("first@example.com other", "second@example.com ")
		if b.Pending() != 0 {
			t.Errorf("%d are behind", b.Pending())
		}
	})
}

// A create that had no answer arrives long after, when the member is deleted
// here already, or renamed.
func TestArrivesLate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*members.Service) error
		want   []string
	}{
		{"deleted", func(s *members.Service) error {
			_, err := s.Delete(context.Background(), byEmail, "a@example.com", nil)
			return err
		}, nil},
		{"renamed", func(s *members.Service) error {
			_, err := s.Update(context.Background(), byEmail, "a@example.com", with("b@example.com"), nil)
			return err
		}, []string{"b@example.com "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				b.Platform.LoseAnswers(false)
				b.Create(byEmail, with("a@example.com"))
				if err := test.change(b.Service); err != nil {
					t.Fatal(err)
				}
				b.Platform.Mend()
				b.Now = b.Now.Add(arrivalTime / 2)
				b.DeliverDue()
				if b.Pending() != 1 {
					t.Fatalf("%d are behind, want 1", b.Pending())
				}
				b.Platform.Members["p-late"] = platform.Member{ID: "p-late", Email: "a@example.com", CreatedAt: b.Now}
				b.CatchUp()
				b.SameOnPlatform(test.want...)
				if b.Pending() != 0 {
					t.Errorf("%d are behind", b.Pending())
				}
			})
		})
	}
}

// An update that had no answer comes to the platform behind a later one, which
// was answered. The later one is what both sides have in the end, though the
// platform says otherwise for a moment.
func TestUpdateArrivesLate(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		m := b.Record(b.Create(byEmail, with("jane@example.com")))
		update := func(name string) members.Result {
			t.Helper()
			result, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: &name}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		b.Platform.LoseAnswers(false)
		if !update("First").Queued {
			t.Error("the first was answered")
		}
		b.Platform.Mend()
		if update("Second").Queued {
			t.Error("the second was not answered")
		}
		b.Platform.Staff(m.PlatformID, func(m *platform.Member) { m.Name = "First" })
		b.Refresh(m.PlatformID)
		if got := b.Get("jane@example.com"); got.Name != "Second" || b.Pending() != 1 {
			t.Errorf("%+v, %d behind", got, b.Pending())
		}
		b.Now = b.Now.Add(arrivalTime / 2)
		b.DeliverDue()
		if b.Pending() != 1 {
			t.Errorf("%d behind before the time is over", b.Pending())
		}
		b.CatchUp()
		b.SameOnPlatform("jane@example.com Second")
		if b.Pending() != 0 {
			t.Errorf("%d are behind", b.Pending())
		}
	})
}

// A delete that the platform refuses is not undone by half: the member stays
// deleted, and the platform is asked again.
func TestRefusedDelete(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byID, with("jane@example.com", id("7")))
		b.Platform.Set(func(method string) error {
			if method == "delete" {
				return &platform.Refusal{Reason: "not now"}
			}
			return nil
		}, false)
		if result, err := b.Service.Delete(t.Context(), byID, "7", nil); err != nil || !result.Queued {
			t.Errorf("%+v, %v", result, err)
		}
		if m, err := b.Service.Get(t.Context(), byID, "7"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("%+v, %v", m, err)
		}
		b.Platform.Mend()
		b.CatchUp()
		b.SameOnPlatform()
	})
}

// A create and the delete after it both arrive without an answer. Nothing more
// is waited for than to hear so.
func TestDeletedWithoutAnswers(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.LoseAnswers(true)
	b.Create(byEmail, with("a@example.com"))
	if _, err := b.Service.Delete(t.Context(), byEmail, "a@example.com", nil); err != nil {
		t.Fatal(err)
	}
	b.Platform.Mend()
	b.Now = b.Now.Add(2 * time.Second)
	b.DeliverDue()
	if b.Pending() != 0 {
		t.Errorf("%d are behind", b.Pending())
	}
	b.SameOnPlatform()
}

// What certainly never reached the platform is not waited for.
func TestNeverSent(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.Break(fmt.Errorf("connection refused: %w", platform.ErrNoEffect))
	b.Create(byEmail, with("a@example.com"))
	if _, err := b.Service.Delete(t.Context(), byEmail, "a@example.com", nil); err != nil {
		t.Fatal(err)
	}
	b.Platform.Mend()
	b.DeliverDue()
	if b.Pending() != 0 {
		t.Errorf("%d are behind", b.Pending())
	}
	b.SameOnPlatform()
}

// Members who pass their emails around in a circle while the platform is away
// do not wait for each other for good.
func TestEmailsInARing(t *testing.T) {
	for _, size := range []int{2, 3, 5} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				email := func(i int) string { return fmt.Sprintf("m%d@example.com", i) }
				rename := func(from, to string) {
					t.Helper()
					if _, err := b.Service.Update(t.Context(), byEmail, from, with(to), nil); err != nil {
						t.Fatal(err)
					}
				}
				var want []string
				for i := range size {
					b.Create(byEmail, with(email(i), name(strconv.Itoa(i))))
					want = append(want, fmt.Sprintf("m%d@example.com %d", i, (i+1)%size))
				}
				b.Platform.Break(membertest.ErrDown)
				rename(email(0), "aside@example.com")
				for i := 1; i < size; i++ {
					rename(email(i), email(i-1))
				}
				rename("aside@example.com", email(size-1))
				b.Platform.Mend()
				for range size {
					b.CatchUp()
				}
				b.SameOnPlatform(want...)
				if b.Pending() != 0 {
					t.Errorf("%d are behind", b.Pending())
				}
			})
		})
	}
}

// slow is a platform that takes longer than a caller waits.
type slow struct {
	*membertest.Platform
	takes time.Duration
}

func (p slow) Update(ctx context.Context, id string, c platform.Change) (platform.Member, error) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < p.takes {
		return platform.Member{}, context.DeadlineExceeded
	}
	return p.Platform.Update(ctx, id, c)
}

// A platform that is slow for a while gets what was queued, though no caller would
// wait for it.
func TestSlowPlatform(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Create(byEmail, with("jane@example.com", name("Before")))
	b.Edge = b.NewEdge(inbound.Site{Platform: slow{b.Platform, 8 * time.Second}}, 5*time.Second)
	result, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("After")}, nil)
	if err != nil || !result.Queued {
		t.Fatalf("%+v, %v", result, err)
	}
	b.CatchUp()
	b.SameOnPlatform("jane@example.com After")
	if b.Pending() != 0 {
		t.Errorf("%d are behind", b.Pending())
	}
}
