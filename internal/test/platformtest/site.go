package platformtest

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// site is the publication as a whole.
type site struct {
	*faults

	Location    platform.Location
	Examination platform.Examination
}

// Identity is the same for all.
func (*site) Identity() string { return "faulty" }

// Locate finds Location.
func (s *site) Locate(ctx context.Context, _ []string) (at platform.Location, err error) {
	err = s.call(ctx, "locate", "", func() error {
		at = s.Location
		return nil
	})
	return at, err
}

// AdminURL is that of Location.
func (s *site) AdminURL() *url.URL { return s.Location.Admin }

// Examine finds Examination.
func (s *site) Examine(ctx context.Context) (found platform.Examination, err error) {
	err = s.call(ctx, "examine", "", func() error {
		found = s.Examination
		return nil
	})
	return found, err
}

// Publication is in Berlin, and in German.
func (s *site) Publication(ctx context.Context) (platform.Publication, error) {
	return platform.Publication{Title: "The Daily", URL: "https://news.example.com/", Language: "de-AT", TimeZone: "Europe/Berlin"},
		s.call(ctx, "publication", "", func() error { return nil })
}

// Labels searches three, without case.
func (s *site) Labels(ctx context.Context, text string) (labels []string, err error) {
	err = s.call(ctx, "labels", text, func() error {
		labels = slices.DeleteFunc([]string{"Choir", "Guests", "Summer guests"}, func(l string) bool {
			return !strings.Contains(strings.ToLower(l), strings.ToLower(text))
		})
		return nil
	})
	return labels, err
}

// MembersPage has one for each of those labels.
func (s *site) MembersPage(ctx context.Context, label string) (page string, err error) {
	err = s.call(ctx, "labels", label, func() error {
		if label == "Choir" || label == "Guests" {
			page = "/#/members?filter=label%3A%5B" + strings.ToLower(label) + "%5D"
		}
		return nil
	})
	return page, err
}
