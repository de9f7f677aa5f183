package trouble

import (
	"context"
	"maps"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// Entry is a reason of a site.
type Entry struct {
	Site string
	Reason
}

// Source lists entries with states by the names of their sites, at most one of a site.
type Source struct {
	States []State
	List   func(ctx context.Context, of State, page database.SitePage) ([]Entry, error)
}

// serves reports whether a source has entries with a state.
func (s Source) serves(of State) bool { return of == Failing || slices.Contains(s.States, of) }

// minPage is how many sites are read at once at least, since some of them may be left out.
const minPage = 100

// list lists sites by name. Sites for which isServed is false are left out: the store may have what remains of those
// that are gone.
func list(ctx context.Context, sources []Source, of State, page database.SitePage, isServed func(site string) bool) (found []Site, err error) {
	if page.Among != nil && len(page.Among) == 0 {
		return nil, nil
	}
	most := page.Most
	for len(found) < most {
		page.Most = max(most-len(found), minPage)
		read, isLast, err := readPage(ctx, sources, of, page)
		if err != nil {
			return nil, err
		}
		for _, site := range read {
			if page.After = site.Name; isServed(site.Name) && len(found) < most {
				found = append(found, site)
			}
		}
		if isLast {
			break
		}
	}
	return found, nil
}

// readPage reads the first sites of a page that any source has. These are among the first of
// each source that has them, so as many of each are enough.
func readPage(ctx context.Context, sources []Source, of State, page database.SitePage) (read []Site, isLast bool, err error) {
	byName := make(map[string]*Site)
	isLast = true
	for _, source := range sources {
		if !source.serves(of) {
			continue
		}
		entries, err := source.List(ctx, of, page)
		if err != nil {
			return nil, false, err
		}
		isLast = isLast && len(entries) < page.Most
		for _, e := range entries {
			if byName[e.Site] == nil {
				byName[e.Site] = &Site{Name: e.Site}
			}
			byName[e.Site].Reasons = append(byName[e.Site].Reasons, e.Reason)
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	isLast = isLast && len(names) <= page.Most
	for _, name := range names[:min(len(names), page.Most)] {
		read = append(read, *byName[name])
	}
	return read, isLast, nil
}

// Known makes a source of sites that are known, in any order.
func Known(of State, reasons map[string]Reason) Source {
	names := slices.Sorted(maps.Keys(reasons))
	return Source{[]State{of}, func(_ context.Context, _ State, page database.SitePage) (list []Entry, err error) {
		from, isThere := slices.BinarySearch(names, page.After)
		if isThere {
			from++
		}
		for _, name := range names[from:] {
			if _, counts := slices.BinarySearch(page.Among, name); len(list) < page.Most && (counts || page.Among == nil) {
				list = append(list, Entry{name, reasons[name]})
			}
		}
		return list, nil
	}}
}
