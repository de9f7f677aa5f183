package caddymodule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// This file finds directives for the same hosts that do not go together: two that answer
// the same path, or that take Ghost's admin to be at different ones.

// shared finds a path that both directives serve, "" for none. The path matchers of both
// have to let requests for it through.
func (a arrival) shared(b arrival) string {
	if a.name == b.name || a.rewritten || b.rewritten {
		return ""
	}
	for _, one := range a.routing.Serves {
		for _, other := range b.routing.Serves {
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

// Check refuses directives that do not go together.
func (s servers) check() error {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := checkServer(s[name].arrivals); err != nil {
			return err
		}
	}
	return nil
}

func checkServer(all []arrival) (err error) {
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

func (a arrival) mistake(text string) error {
	if a.line == "" {
		return fmt.Errorf("%s: %s", a.at, text)
	}
	return fmt.Errorf("%s: %s, at %s", a.name, text, a.at)
}

// checkAdmins refuses a theme_manifest and a staff_desk for the same hosts, of which none
// of the one has a path of the other: a Ghost has its admin at one path.
func checkAdmins(before, after arrival, all []arrival) error {
	if before.name == after.name || before.routing.AdminPath == "" || after.routing.AdminPath == "" || strings.EqualFold(before.routing.AdminPath, after.routing.AdminPath) ||
		before.rewritten || after.rewritten || before.isPartial || after.isPartial {
		return nil
	}
	hasOther := slices.ContainsFunc(all, func(other arrival) bool {
		isOf := func(a, b arrival) bool {
			return other.name == a.name && strings.EqualFold(other.routing.AdminPath, b.routing.AdminPath)
		}
		return (isOf(before, after) || isOf(after, before)) && other.hasHostsOf(after)
	})
	if hasOther {
		return nil
	}
	return after.mistake(fmt.Sprintf("the path is %s here and %s in the %s at %s: write the same, that of Ghost's admin",
		after.routing.AdminPath, before.routing.AdminPath, before.name, before.at))
}

// warnOfShared warns of two directives that serve the same path. It is no error, since a
// matcher may tell their requests apart.
func warnOfShared(servers [][]arrival) (warnings []config.Warning) {
	for _, all := range servers {
		pairs(all, func(before, after arrival) {
			if path := before.shared(after); path != "" {
				warnings = append(warnings, config.NewWarning(
					"an earlier directive answers this path too, for the requests that its matcher lets through: write another path into one of the two",
					"directive", after.name, "at", after.at, "path", path, "earlier", before.name, "earlier_at", before.at,
				))
			}
		})
	}
	return warnings
}

// warnOfTwoEvents warns of each events_api for hosts that another one serves at another
// path.
func warnOfTwoEvents(servers [][]arrival) (warnings []config.Warning) {
	for _, all := range servers {
		pairs(all, func(before, after arrival) {
			if after.name != "events_api" || before.name != after.name || before.routing.Path == after.routing.Path || before.rewritten || after.rewritten || before.isPartial || after.isPartial {
				return
			}
			warnings = append(warnings, config.NewWarning(
				"events_api is written twice for the same hosts, so readers have two addresses for each event: remove one of the two",
				"path", after.routing.Path, "at", after.at, "other_path", before.routing.Path, "other_at", before.at,
			))
		})
	}
	return warnings
}
