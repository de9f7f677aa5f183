package config

import (
	"fmt"
	"slices"
	"strings"
)

// This file is about the labels of sites in the store, and what a token that is bound to labels may
// do with them.

// MaxLabels bounds the labels of a site, of a token, and of a request.
const MaxLabels = 20

// CheckLabel checks a label, which is an argument of an option.
func CheckLabel(option, label string) error {
	valid := func(c rune) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' }
	if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(c rune) bool { return !valid(c) }) {
		return &Mistake{Option: option, Text: quote(label) + ": a label has 1 to 63 lower-case letters, digits and hyphens, such as acme"}
	}
	return nil
}

// checkedLabels sorts labels, without those that are there twice. It is nil for none.
func checkedLabels(labels []string) ([]string, error) {
	for _, label := range labels {
		if err := CheckLabel("labels", label); err != nil {
			return nil, err
		}
	}
	checked := slices.Compact(slices.Sorted(slices.Values(labels)))
	if len(checked) > MaxLabels {
		return nil, &Mistake{Option: "labels", Text: fmt.Sprintf("there are %d: write at most %d", len(checked), MaxLabels)}
	}
	return checked, nil
}

// Scope is what somebody may see and change of the sites in the store: those that carry one of the
// labels, or all if there are none.
type Scope []string

// Has reports whether a site with labels is in the scope.
func (s Scope) Has(labels []string) bool {
	return len(s) == 0 || slices.ContainsFunc(labels, func(label string) bool { return slices.Contains(s, label) })
}

// forNew are the labels of a new site: all of the scope, if none are written.
func (s Scope) forNew(labels []string) ([]string, error) {
	if len(labels) == 0 {
		return s, nil
	}
	return labels, s.checkChange(nil, labels)
}

// checkChange refuses labels by which a site would leave the scope, and a change of labels that are not
// in it.
func (s Scope) checkChange(before, after []string) error {
	if len(s) == 0 {
		return nil
	}
	foreign := func(labels []string) []string {
		return slices.Sorted(func(yield func(string) bool) {
			for _, label := range labels {
				if !slices.Contains(s, label) && !yield(label) {
					return
				}
			}
		})
	}
	if !s.Has(after) || !slices.Equal(foreign(before), foreign(after)) {
		if len(before) == 0 {
			return &Mistake{Option: "labels", Text: "write the token's labels alone, and at least one of them: " + strings.Join(s, ", ")}
		}
		return &Mistake{Option: "labels", Text: "send the site's other labels as they are, since the token may add and remove these alone, and keep one of them: " + strings.Join(s, ", ")}
	}
	return nil
}
