package caddymodule

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// This file finds directives for the same hosts that do not go together: two that answer
// the same path, or that take Ghost's admin to be at different ones.

// area is where a directive answers all requests itself: a path, and maybe all below it.
type area struct {
	path  string
	below bool
}

func (a area) has(path string) bool { return a.path == path || a.below && below(path, a.path) }

// meets returns a path that two areas share, empty for none.
func (a area) meets(b area) string {
	switch {
	case a.has(b.path):
		return b.path
	case b.has(a.path):
		return a.path
	}
	return ""
}

// shared returns a path that a directive and one after it both answer, empty for none. The
// matchers of paths of both have to let requests for it through.
func (a arrival) shared(b arrival) string {
	if a.name == b.name || a.rewritten || b.rewritten {
		return ""
	}
	for _, one := range a.directive.answers() {
		for _, other := range b.directive.answers() {
			path := one.meets(other)
			if path == "" {
				continue
			}
			for _, path := range []string{path, path + "/x"} {
				if one.has(path) && other.has(path) && a.lets(path) && b.lets(path) {
					return path
				}
			}
		}
	}
	return ""
}

// pairs calls found with each directive of a server and each of its befores.
func pairs(all []arrival, found func(before, after arrival)) {
	for i, list := range befores(all) {
		for _, before := range list {
			found(before, all[i])
		}
	}
}

// checkArrivals refuses directives of a server that do not go together.
func (a *App) checkArrivals(all []arrival) (err error) {
	pairs(all, func(before, after arrival) {
		if path := before.shared(after); err == nil && path != "" && !before.isPartial {
			err = after.mistake(fmt.Sprintf("%s at %s answers %s too: write another path into one of the two", before.name, before.at, path))
		}
		if err == nil {
			err = checkAdmins(before, after, all)
		}
	})
	return err
}

// mistake returns an error about a directive, with its place.
func (a arrival) mistake(text string) error {
	if a.directive.line() == "" {
		return fmt.Errorf("%s: %s", a.at, text)
	}
	return fmt.Errorf("%s: %s, at %s", a.name, text, a.at)
}

// checkAdmins refuses a theme_manifest and a staff_desk for the same hosts, of which none
// of the one has a path of the other: a Ghost has its admin at one path.
func checkAdmins(before, after arrival, all []arrival) error {
	if before.name == after.name || before.adminPath() == "" || after.adminPath() == "" || strings.EqualFold(before.adminPath(), after.adminPath()) ||
		before.rewritten || after.rewritten || before.isPartial || after.isPartial {
		return nil
	}
	hasOther := slices.ContainsFunc(all, func(other arrival) bool {
		isOf := func(a, b arrival) bool {
			return other.name == a.name && strings.EqualFold(other.adminPath(), b.adminPath())
		}
		return (isOf(before, after) || isOf(after, before)) && other.hasHostsOf(after)
	})
	if hasOther {
		return nil
	}
	return after.mistake(fmt.Sprintf("the path is %s here and %s in the %s at %s: write the same, that of Ghost's admin",
		after.adminPath(), before.adminPath(), before.name, before.at))
}

// adminPath returns where a directive takes the platform's admin to be, empty for one that
// does not care.
func (a arrival) adminPath() string {
	switch of := a.directive.(type) {
	case *ThemeManifest:
		return of.path()
	case *StaffDesk:
		return of.path()
	}
	return ""
}

// warnOfShared returns a warning for directives that both answer a path, where a matcher
// may tell their requests apart.
func warnOfShared(servers [][]arrival) (warnings []warning) {
	for _, all := range servers {
		pairs(all, func(before, after arrival) {
			if path := before.shared(after); path != "" {
				warnings = append(warnings, warning{
					"an earlier directive answers this path too, for the requests that its matcher lets through: write another path into one of the two",
					[]zap.Field{
						zap.String("directive", after.name), zap.String("at", after.at), zap.String("path", path),
						zap.String("earlier", before.name), zap.String("earlier_at", before.at),
					},
				})
			}
		})
	}
	return warnings
}

// warnOfTwoEvents returns a warning for each events_api that is for the same hosts as
// another, at another path.
func warnOfTwoEvents(servers [][]arrival) (warnings []warning) {
	for _, all := range servers {
		pairs(all, func(before, after arrival) {
			one, isOne := before.directive.(*EventsAPI)
			other, isOther := after.directive.(*EventsAPI)
			if !isOne || !isOther || one.path() == other.path() || before.rewritten || after.rewritten || before.isPartial || after.isPartial {
				return
			}
			warnings = append(warnings, warning{
				"events_api is written twice for the same hosts, so readers have two addresses for each event: remove one of the two",
				[]zap.Field{zap.String("path", other.path()), zap.String("at", after.at), zap.String("other_path", one.path()), zap.String("other_at", before.at)},
			})
		})
	}
	return warnings
}
