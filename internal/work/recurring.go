package work

import (
	"cmp"
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recurring is the Table of a kind of check that recurs, with one task for each site. It is in memory, so that an idle site costs the
// store nothing: a process that starts asks anew. It may be used by many goroutines at once.
type Recurring struct {
	kind string
	now  func() time.Time

	mu    sync.Mutex
	tasks map[string]*recurring // by site
}

type recurring struct {
	dueAt   time.Time
	askedAt time.Time // when it is to be done once more, if that was asked for while it is done
	holder  string    // while it is done
}

var _ Table = (*Recurring)(nil)

// NewRecurring makes a table without tasks. now is its clock.
func NewRecurring(kind string, now func() time.Time) *Recurring {
	return &Recurring{kind: kind, now: now, tasks: make(map[string]*recurring)}
}

// Put has the task of a site done at a time, in place of one that there may be.
func (r *Recurring) Put(site string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[site] = &recurring{dueAt: at}
}

// Keep has a task of each of these sites, and of no others. A new one is first done at a random time within an interval.
func (r *Recurring) Keep(sites []string, within time.Duration) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make(map[string]*recurring, len(sites))
	for _, site := range sites {
		if kept[site] = r.tasks[site]; kept[site] == nil {
			kept[site] = &recurring{dueAt: now.Add(mathrand.N(within))}
		}
	}
	r.tasks = kept
}

// By has the task of a site done by a time at the latest, if there is one. A task that is being done is done once more.
func (r *Recurring) By(site string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch t := r.tasks[site]; {
	case t == nil:
	case t.holder != "":
		if t.askedAt.IsZero() || at.Before(t.askedAt) {
			t.askedAt = at
		}
	case at.Before(t.dueAt):
		t.dueAt = at
	}
}

// Remove removes the task of a site. An attempt that is under way goes on.
func (r *Recurring) Remove(site string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tasks, site)
}

// DueKinds is described at [Table].
func (r *Recurring) DueKinds(context.Context) ([]string, error) { return []string{r.kind}, nil }

// DueSites lists those first that have had it longest.
func (r *Recurring) DueSites(_ context.Context, _ string, behind DueSite) (sites []DueSite, err error) {
	now := r.now()
	compare := func(a, b DueSite) int { return cmp.Or(cmp.Compare(a.Since, b.Since), strings.Compare(a.Site, b.Site)) }
	r.mu.Lock()
	for site, t := range r.tasks {
		if of := (DueSite{site, t.dueAt.UnixMilli()}); t.holder == "" && !t.dueAt.After(now) && compare(of, behind) > 0 {
			sites = append(sites, of)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(sites, compare)
	return sites[:min(len(sites), MaxDueSites)], nil
}

func (r *Recurring) task(site string, of *recurring) Task {
	return Task{Site: site, Kind: r.kind, DueAt: of.dueAt, Holder: of.holder, Until: r.now().AddDate(1, 0, 0)}
}

// Due is described at [Table].
func (r *Recurring) Due(_ context.Context, site, _ string, by time.Time, _ int) ([]Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tasks[site]; t != nil && t.holder == "" && !t.dueAt.After(by) {
		return []Task{r.task(site, t)}, nil
	}
	return nil, nil
}

// Lease leases a task until it is settled or released.
func (r *Recurring) Lease(_ context.Context, t Task, early bool) (Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch of := r.tasks[t.Site]; {
	case of == nil:
		return Task{}, ErrGone
	case of.holder != "":
		return Task{}, ErrHeld
	case !early && of.dueAt.After(r.now()):
		return Task{}, ErrEarly
	default:
		of.holder = rand.Text()
		return r.task(t.Site, of), nil
	}
}

// held is what a task's holder has, and nil if that is no longer so. The caller holds the lock.
func (r *Recurring) held(t Task) (*recurring, error) {
	if of := r.tasks[t.Site]; of != nil && of.holder == t.Holder {
		return of, nil
	}
	return nil, ErrLost
}

// Prolong fails if the task was removed or replaced.
func (r *Recurring) Prolong(_ context.Context, t Task, _ time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.held(t)
	return err
}

// Release is described at [Table].
func (r *Recurring) Release(_ context.Context, t Task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, err := r.held(t)
	if err == nil {
		of.holder = ""
	}
	return err
}

// Settle notes when the task is due again, as the outcome Later says. There is no other: it recurs.
func (r *Recurring) Settle(_ context.Context, t Task, result Result) (isDue bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, err := r.held(t)
	if err != nil {
		return false, err
	}
	asked := of.askedAt
	of.holder, of.askedAt, of.dueAt = "", time.Time{}, result.At
	if asked.IsZero() {
		return false, nil
	}
	if asked.Before(of.dueAt) {
		of.dueAt = asked
	}
	return !of.dueAt.After(r.now()), nil
}

// MakeDue does nothing: a platform is asked when it is time.
func (*Recurring) MakeDue(context.Context, string) (map[string]int, error) { return nil, nil }

// Pending lists nothing: checks are not pending.
func (*Recurring) Pending(context.Context, string, int) ([]Task, error) { return nil, nil }

// Refused lists nothing.
func (*Recurring) Refused(context.Context, string, int) ([]Task, error) { return nil, nil }

// Count counts nothing.
func (*Recurring) Count(context.Context, string) (map[string]int, error) { return nil, nil }

// CountAll counts nothing.
func (*Recurring) CountAll(context.Context) (map[string]map[string]int, error) { return nil, nil }

// Purge does nothing.
func (*Recurring) Purge(context.Context) error { return nil }
