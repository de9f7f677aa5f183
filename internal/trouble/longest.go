package trouble

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// longestRead is how many sites are read for the longest ones, since some may not be served any more.
const longestRead = 100

// Longest lists the sites that are in a state for longest, at most so many: those that are served.
// It knows KeyRejected, PlatformAway and WritesPending.
func (s *Store) Longest(ctx context.Context, of State, most int, isServed func(site string) bool) ([]Entry, error) {
	all, err := s.longest(ctx, of)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e Entry) bool { return !isServed(e.Site) })
	return all[:min(len(all), most)], nil
}

func (s *Store) longest(ctx context.Context, of State) (list []Entry, err error) {
	if of != WritesPending {
		failing, err := s.contacts.Longest(ctx, outcomeOf(of), longestRead)
		for _, c := range failing {
			list = append(list, Entry{c.Site, Reason{State: of, Since: known(c.Since), Problem: c.Problem}})
		}
		return list, err
	}
	list, err = s.addUp(func(of database.Backlogs, before time.Time) ([]database.Backlog, error) {
		return of.Longest(ctx, s.db, before, longestRead)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(a.Since.Compare(*b.Since), cmp.Compare(a.Site, b.Site))
	})
	return list, nil
}

// Count counts the sites whose platform rejects the key or is away, as the store has them.
func (s *Store) Count(ctx context.Context) (map[State]int, error) {
	counted, err := s.contacts.CountFailing(ctx)
	counts := map[State]int{KeyRejected: 0, PlatformAway: 0}
	for of, n := range counted {
		counts[stateOf(of)] += n
	}
	return counts, err
}

// Age is how long an entry is so, by the clock of the store.
func (s *Store) Age(e Entry) time.Duration { return max(0, s.db.Now().Sub(*e.Since)) }
