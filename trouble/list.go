package trouble

import (
	"context"
	"maps"
	"slices"
)

// Entry is a reason of a site.
type Entry struct {
	Site string
	Reason
}

// Source lists entries with states by the names of their sites, those after a name: at most so
// many, and at most one of a site.
type Source struct {
	States []State
	List   func(ctx context.Context, of State, after string, most int) ([]Entry, error)
}

// serves reports whether a source has entries with a state.
func (s Source) serves(of State) bool { return of == Failing || slices.Contains(s.States, of) }

// minPage is how many sites are read at once at least, since some of them may be left out.
const minPage = 100

// list lists sites by name, those after one, at most so many. Sites for which isServed is false are
// left out: the store may have what remains of those that are gone.
func list(ctx context.Context, sources []Source, of State, after string, most int, isServed func(site string) bool) (found []Site, err error) {
	for len(found) < most {
		page, isLast, err := readPage(ctx, sources, of, after, max(most-len(found), minPage))
		if err != nil {
			return nil, err
		}
		for _, site := range page {
			if after = site.Name; isServed(site.Name) && len(found) < most {
				found = append(found, site)
			}
		}
		if isLast {
			break
		}
	}
	return found, nil
}

// readPage reads the first sites after a name that any source has. These are among the first of
// each source that has them, so as many of each are enough.
func readPage(ctx context.Context, sources []Source, of State, after string, most int) (page []Site, isLast bool, err error) {
	byName := make(map[string]*Site)
	isLast = true
	for _, source := range sources {
		if !source.serves(of) {
			continue
		}
		entries, err := source.List(ctx, of, after, most)
		if err != nil {
			return nil, false, err
		}
		isLast = isLast && len(entries) < most
		for _, e := range entries {
			if byName[e.Site] == nil {
				byName[e.Site] = &Site{Name: e.Site}
			}
			byName[e.Site].Reasons = append(byName[e.Site].Reasons, e.Reason)
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	isLast = isLast && len(names) <= most
	for _, name := range names[:min(len(names), most)] {
		page = append(page, *byName[name])
	}
	return page, isLast, nil
}

// Known makes a source of sites that are known, in any order.
func Known(of State, reasons map[string]Reason) Source {
	names := slices.Sorted(maps.Keys(reasons))
	return Source{[]State{of}, func(_ context.Context, _ State, after string, most int) (list []Entry, err error) {
		from, isThere := slices.BinarySearch(names, after)
		if isThere {
			from++
		}
		for _, name := range names[from:min(from+most, len(names))] {
			list = append(list, Entry{name, reasons[name]})
		}
		return list, nil
	}}
}
