package members

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/wait"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// What is acknowledged reaches a platform that was away, and only once.
func TestPlatformAway(t *testing.T) {
	faults := map[string]struct {
		err   error
		after bool
	}{
		"down":                          {errDown, false},
		"applies, but never answers":    {context.DeadlineExceeded, true},
		"says nothing about the member": {errors.New("Ghost answers 500"), false},
	}
	for fault, how := range faults {
		t.Run(fault, func(t *testing.T) {
			eachStore(t, func(t *testing.T, b *bench) {
				ctx := t.Context()
				kept := b.create(byEmail, with("kept@example.com"))
				gone := b.create(byEmail, with("gone@example.com"))

				b.platform.set(func(method string) error {
					if method == "find" {
						return nil
					}
					return how.err
				}, how.after)
				results := []Result{b.create(byEmail, with("new@example.com", name("New")))}
				for _, do := range []func() (Result, error){
					func() (Result, error) {
						return b.service.Update(ctx, byEmail, "kept@example.com", with("renamed@example.com", name("Kept")), nil)
					},
					func() (Result, error) { return b.service.Delete(ctx, byEmail, "gone@example.com", nil) },
					func() (Result, error) {
						return b.service.Update(ctx, byEmail, "new@example.com", Fields{Name: new("Newer")}, nil)
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
				if list, n, err := b.service.Behind(ctx, 2); err != nil || n != 3 || len(list) != 2 || list[0].Problem == "" {
					t.Errorf("%d are behind: %+v, %v", n, list, err)
				}
				// Reads answer what was acknowledged meanwhile.
				if got, err := b.service.Get(ctx, byEmail, "renamed@example.com"); err != nil || got.GUID != kept.Member.GUID {
					t.Errorf("%+v, %v", got, err)
				}
				if got, err := b.service.Get(ctx, byEmail, "gone@example.com"); !errors.Is(err, ErrNotFound) {
					t.Errorf("%s is still there: %+v, %v", gone.Member.GUID, got, err)
				}

				b.platform.mend()
				b.catchUp()
				b.sameAsPlatform("new@example.com Newer", "renamed@example.com Kept")
				if b.behind() != 0 {
					t.Errorf("%d are behind", b.behind())
				}
			})
		})
	}
}

// An email that was let go of can be taken at once, in whatever order the
// platform gets to know.
func TestEmailHandedOn(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.create(byEmail, with("a@example.com", name("first")))
		b.create(byEmail, with("d@example.com", name("deleted")))
		b.platform.breakWith(errDown)
		if _, err := b.service.Update(ctx, byEmail, "a@example.com", with("b@example.com"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.service.Delete(ctx, byEmail, "d@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		for _, email := range []string{"a@example.com", "d@example.com"} {
			if result := b.create(byEmail, with(email, name("second"))); !result.Queued {
				t.Errorf("%s is not queued behind the one who lets go of it", email)
			}
		}
		b.catchUp()
		b.sameAsPlatform("a@example.com second", "b@example.com first", "d@example.com second")
	})
}

// Deleted and made again while the platform was away: the two may arrive in any
// order, and the new one must not go with the old.
func TestDeletedAndMadeAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		old := b.create(byEmail, with("e@example.com", name("old"))).Member
		b.platform.breakWith(errDown)
		if _, err := b.service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.create(byEmail, with("e@example.com", name("new")))
		// Another edge removes the old one: it is noted here, and the platform
		// has it until the new one's email was found to be taken.
		old.Applied = 2
		if _, err := b.store.Applied(t.Context(), old, "other edge"); err != nil {
			t.Fatal(err)
		}
		looks := 0
		b.platform.set(func(method string) error {
			if method == "find" {
				if looks++; looks == 2 {
					clear(b.platform.members)
				}
			}
			return nil
		}, false)
		b.catchUp()
		b.platform.mend()
		b.catchUp()
		b.sameAsPlatform("e@example.com new")
	})
}

// A member who is read while another edge removes it does not come back.
func TestDeletedWhileItIsRead(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		old := b.create(byEmail, with("e@example.com")).Member
		b.platform.breakWith(errDown)
		if _, err := b.service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.platform.set(func(method string) error {
			if method == "find" { // the last answer before the other edge is done
				old.Applied = 2
				_, err := b.store.Applied(t.Context(), old, "other edge")
				return err
			}
			return nil
		}, false)
		if got, err := b.service.Get(t.Context(), byEmail, "e@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A member who was deleted before the platform's answer arrived stays deleted.
func TestDeletedBeforeItWasAnswered(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		b.platform.loseAnswers(true)
		b.create(byEmail, with("e@example.com"))
		b.platform.breakWith(errDown)
		if _, err := b.service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		if m, err := b.service.Get(t.Context(), byEmail, "e@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v, %v", m, err)
		}
		b.catchUp()
		b.sameAsPlatform()
	})
}

// Whoever the platform had before is nobody's to remove or to change.
func TestStrangersAreLeftAlone(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		b.platform.members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com", Name: "Old", Status: "paid"}
		b.platform.breakWith(errDown)
		b.create(byID, with("old@example.com", id("7")))
		if _, err := b.service.Delete(t.Context(), byID, "7", nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		b.catchUp()
		b.sameAsPlatform("old@example.com Old")
	})
}

// A create that was acknowledged while the platform was away can turn out to be
// of somebody whom it had all along. Nothing that is known of them is lost.
func TestCreatedWhileAway(t *testing.T) {
	for _, integration := range []Integration{byEmail, byID} {
		t.Run(integration.Name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, b *bench) {
				b.platform.members["p-old"] = platform.Member{
					ID: "p-old", Email: "old@example.com", Name: "Old", Note: "staff's", Labels: []string{"Founding"},
					Status: "paid", TierID: "prod_1", CreatedAt: b.now, // just before, so not told apart by that
				}
				b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
				b.create(integration, with("old@example.com", id("8"), func(f *Fields) { f.Labels, f.Note = &[]string{"New"}, new("mine") }))
				b.platform.mend()
				b.catchUp()
				want := platform.Member{
					ID: "p-old", Email: "old@example.com", Name: "Old", Note: "mine", Labels: []string{"New"}, Status: "paid", TierID: "prod_1",
				}
				if diff := cmp.Diff(want, b.platform.members["p-old"], cmpopts.IgnoreFields(platform.Member{}, "CreatedAt")); diff != "" {
					t.Error(diff)
				}
				m, err := b.store.Find(t.Context(), memberstore.Key{Site: "daily", Email: "old@example.com"})
				if err != nil || m.Status != "paid" || *m.TierID != "prod_1" || m.PlatformID != "p-old" || b.behind() != 0 {
					t.Errorf("%+v, %v, %d behind", m, err, b.behind())
				}
			})
		})
	}
}

// Staff who remove a member on the platform have the last word.
func TestRemovedOnThePlatform(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		created := b.create(byEmail, with("jane@example.com"))
		b.platform.mu.Lock()
		delete(b.platform.members, created.Member.PlatformID)
		b.platform.mu.Unlock()
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("x")}, nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("update: %v", err)
		}
		if _, err := b.service.Get(t.Context(), byEmail, "jane@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("get: %v", err)
		}
		b.sameAsPlatform()
	})
}

// Two edges on one store write the same members: every write is there, on both
// sides, once.
func TestTwoEdges(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		edges := []*Service{b.edge(b.platform), b.edge(b.platform)}
		const writers, labels = 4, 5
		for i := range 3 {
			b.create(byEmail, with(fmt.Sprintf("m%d@example.com", i)))
		}
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for n := range labels {
					email := fmt.Sprintf("m%d@example.com", n%3)
					_, err := edges[w%2].write(context.Background(), byEmail, email, nil, func(m *memberstore.Member) error {
						m.Labels = append(m.Labels, fmt.Sprint(w, "-", n))
						m.Names(memberstore.Labels)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		b.catchUp()
		total := 0
		for i := range 3 {
			m := b.get(fmt.Sprintf("m%d@example.com", i))
			total += len(m.Labels)
			b.platform.mu.Lock()
			if diff := cmp.Diff(m.Labels, b.platform.members[m.PlatformID].Labels); diff != "" {
				t.Errorf("%s differs on the platform: %s", m.Email, diff)
			}
			b.platform.mu.Unlock()
		}
		if total != writers*labels {
			t.Errorf("%d labels of %d writes", total, writers*labels)
		}
	})
}

func TestRun(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	service := New(Config{Site: "daily", Store: b.store, Platform: b.platform, Logger: zap.NewNop()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	b.platform.breakWith(errDown)
	if result, err := service.Create(ctx, byEmail, with("jane@example.com")); err != nil || !result.Queued {
		t.Fatalf("%+v, %v", result, err)
	}
	b.platform.mend()
	go func() {
		service.Run(ctx)
		close(done)
	}()
	wait.Until(t, func() string {
		if n := b.behind(); n > 0 {
			return fmt.Sprintf("%d are behind", n)
		}
		return ""
	})
	cancel()
	<-done
	b.sameAsPlatform("jane@example.com ")
}

// A create that had no answer arrived under its first email. The member is not
// made a second time under the one that it was given meanwhile.
func TestRenamedBeforeItWasAnswered(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		b.platform.loseAnswers(true)
		b.create(byEmail, with("first@example.com"))
		b.platform.breakWith(errDown)
		if _, err := b.service.Update(t.Context(), byEmail, "first@example.com", with("second@example.com"), nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		// Nobody else is taken for it, nor can take it for themselves.
		b.create(byEmail, with("first@example.com", name("other")))
		b.catchUp()
		b.sameAsPlatform("first@example.com other", "second@example.com ")
		if b.behind() != 0 {
			t.Errorf("%d are behind", b.behind())
		}
	})
}

// A create that had no answer arrives long after, when the member is deleted
// here already, or renamed.
func TestArrivesLate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Service) error
		want   []string
	}{
		{"deleted", func(s *Service) error {
			_, err := s.Delete(context.Background(), byEmail, "a@example.com", nil)
			return err
		}, nil},
		{"renamed", func(s *Service) error {
			_, err := s.Update(context.Background(), byEmail, "a@example.com", with("b@example.com"), nil)
			return err
		}, []string{"b@example.com "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, b *bench) {
				b.platform.loseAnswers(false)
				b.create(byEmail, with("a@example.com"))
				if err := test.change(b.service); err != nil {
					t.Fatal(err)
				}
				b.platform.mend()
				b.now = b.now.Add(arrivalTime / 2)
				if err := b.service.catchUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				if b.behind() != 1 {
					t.Fatalf("%d are behind, want 1", b.behind())
				}
				b.platform.members["p-late"] = platform.Member{ID: "p-late", Email: "a@example.com", CreatedAt: b.now}
				b.catchUp()
				b.sameAsPlatform(test.want...)
				if b.behind() != 0 {
					t.Errorf("%d are behind", b.behind())
				}
			})
		})
	}
}

// An update that had no answer comes to the platform behind a later one, which
// was answered. The later one is what both sides have in the end, though the
// platform says otherwise for a moment.
func TestUpdateArrivesLate(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		m := b.create(byEmail, with("jane@example.com")).Member
		update := func(name string) Result {
			t.Helper()
			result, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: &name}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		b.platform.loseAnswers(false)
		if !update("First").Queued {
			t.Error("the first was answered")
		}
		b.platform.mend()
		if update("Second").Queued {
			t.Error("the second was not answered")
		}
		b.platform.staff(m.PlatformID, func(m *platform.Member) { m.Name = "First" })
		b.refresh(m.PlatformID)
		if got := b.get("jane@example.com"); got.Name != "Second" || b.behind() != 1 {
			t.Errorf("%+v, %d behind", got, b.behind())
		}
		b.now = b.now.Add(arrivalTime / 2)
		if err := b.service.catchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.behind() != 1 {
			t.Errorf("%d behind before the time is over", b.behind())
		}
		b.catchUp()
		b.sameAsPlatform("jane@example.com Second")
		if b.behind() != 0 {
			t.Errorf("%d are behind", b.behind())
		}
	})
}

// A delete that the platform refuses is not undone by half: the member stays
// deleted, and the platform is asked again.
func TestRefusedDelete(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		b.create(byID, with("jane@example.com", id("7")))
		b.platform.set(func(method string) error {
			if method == "delete" {
				return &platform.Refusal{Reason: "not now"}
			}
			return nil
		}, false)
		if result, err := b.service.Delete(t.Context(), byID, "7", nil); err != nil || !result.Queued {
			t.Errorf("%+v, %v", result, err)
		}
		if m, err := b.service.Get(t.Context(), byID, "7"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v, %v", m, err)
		}
		b.platform.mend()
		b.catchUp()
		b.sameAsPlatform()
	})
}

// A create and the delete after it both arrive without an answer. Nothing more
// is waited for than to hear so.
func TestDeletedWithoutAnswers(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	b.platform.loseAnswers(true)
	b.create(byEmail, with("a@example.com"))
	if _, err := b.service.Delete(t.Context(), byEmail, "a@example.com", nil); err != nil {
		t.Fatal(err)
	}
	b.platform.mend()
	b.now = b.now.Add(2 * firstPause)
	if err := b.service.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.behind() != 0 {
		t.Errorf("%d are behind", b.behind())
	}
	b.sameAsPlatform()
}

// What certainly never reached the platform is not waited for.
func TestNeverSent(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	b.platform.breakWith(fmt.Errorf("connection refused: %w", platform.ErrNoEffect))
	b.create(byEmail, with("a@example.com"))
	if _, err := b.service.Delete(t.Context(), byEmail, "a@example.com", nil); err != nil {
		t.Fatal(err)
	}
	b.platform.mend()
	if err := b.service.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.behind() != 0 {
		t.Errorf("%d are behind", b.behind())
	}
	b.sameAsPlatform()
}

// Members who pass their emails around in a circle while the platform is away
// do not wait for each other for good.
func TestEmailsInARing(t *testing.T) {
	for _, size := range []int{2, 3, 5} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			eachStore(t, func(t *testing.T, b *bench) {
				email := func(i int) string { return fmt.Sprintf("m%d@example.com", i) }
				rename := func(from, to string) {
					t.Helper()
					if _, err := b.service.Update(t.Context(), byEmail, from, with(to), nil); err != nil {
						t.Fatal(err)
					}
				}
				var want []string
				for i := range size {
					b.create(byEmail, with(email(i), name(strconv.Itoa(i))))
					want = append(want, fmt.Sprintf("m%d@example.com %d", i, (i+1)%size))
				}
				b.platform.breakWith(errDown)
				rename(email(0), "aside@example.com")
				for i := 1; i < size; i++ {
					rename(email(i), email(i-1))
				}
				rename("aside@example.com", email(size-1))
				b.platform.mend()
				for range size {
					b.catchUp()
				}
				b.sameAsPlatform(want...)
				if b.behind() != 0 {
					t.Errorf("%d are behind", b.behind())
				}
			})
		})
	}
}

// slow is a platform that takes longer than a caller waits.
type slow struct {
	*faulty
	takes time.Duration
}

func (p slow) Update(ctx context.Context, id string, c platform.Change) (platform.Member, error) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < p.takes {
		return platform.Member{}, context.DeadlineExceeded
	}
	return p.faulty.Update(ctx, id, c)
}

// A platform that is slow for a while gets what was queued, though no caller would
// wait for it.
func TestSlowPlatform(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	b.create(byEmail, with("jane@example.com", name("Before")))
	b.service = b.edge(slow{b.platform, 8 * time.Second})
	b.service.Timeout = 5 * time.Second
	result, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("After")}, nil)
	if err != nil || !result.Queued {
		t.Fatalf("%+v, %v", result, err)
	}
	b.catchUp()
	b.sameAsPlatform("jane@example.com After")
	if b.behind() != 0 {
		t.Errorf("%d are behind", b.behind())
	}
}
