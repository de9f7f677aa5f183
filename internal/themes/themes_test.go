package themes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// clean has no findings. Its only section has the name.
func clean(name string) string {
	return `manifest_version: 1
events:
  types:
    talk: {post_template: custom-talk}
homepage_curation:
  sections:
    - key: top
      name: ` + name + `
      slots: [{key: lead, label: Lead, tag: "#lead"}]
`
}

// warned has a finding in an event type.
func warned(name string) string {
	return strings.Replace(clean(name), "custom-talk}", "custom-talk, supported_fields: [colour]}", 1)
}

const (
	broken  = "manifest_version: 1\nevents: [\n"
	unknown = "manifest_version: 2\n"
)

func file(text string) Source {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

func failing(err error) Source {
	return func(context.Context) ([]byte, error) { return nil, err }
}

var errUnreachable = errors.New("connection refused")

// state is what a theme offers.
type state struct {
	Section string // of the curation; empty while that is inactive
	Types   int
	Status  string // empty if nothing is kept
}

func each(t *testing.T, test func(t *testing.T, s *Service)) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		test(t, &Service{Site: "daily", Store: store, Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }})
	})
}

func orNone(status string) string {
	if status == "" {
		return NoManifest
	}
	return status
}

func stateOf(t testing.TB, s *Service) state {
	t.Helper()
	theme, err := s.Store.Find(t.Context(), "daily", "nightly")
	if errors.Is(err, ErrNotFound) {
		return state{}
	}
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	now := state{Status: theme.Report().Status}
	if curation := theme.Curation(); curation != nil {
		now.Section = curation.Sections[0].Name
	}
	if events := theme.Events(); events != nil {
		now.Types = len(events.Types)
	}
	return now
}

// What is kept after each upload and refresh, one row one test, and after a file
// that is ignored entirely.
func TestLastKnownGoodCopySurvivesFindings(t *testing.T) {
	tests := []struct {
		name   string
		before []Source
		source Source
		want   state
		err    error
	}{
		{"inactive, zero findings", nil, file(clean("A")), state{"A", 1, "Valid"}, nil},
		{"inactive, a finding", nil, file(warned("A")), state{"", 1, "1 warning"}, nil},
		{"active, findings", []Source{file(clean("A"))}, file(warned("B")), state{"A", 1, "1 warning"}, nil},
		{"active, zero findings again", []Source{file(clean("A")), file(warned("B"))}, file(clean("C")), state{"C", 1, "Valid"}, nil},
		{"active, the repository cannot be reached", []Source{file(clean("A"))}, failing(errUnreachable), state{"A", 1, "Valid"}, errUnreachable},
		{"active, no file", []Source{file(clean("A"))}, failing(ErrNoManifest), state{}, nil},
		{"file removed, and restored", []Source{file(clean("A")), failing(ErrNoManifest)}, file(clean("B")), state{"B", 1, "Valid"}, nil},
		{"inactive, no file", nil, failing(ErrNoManifest), state{}, nil},
		{"inactive, cannot be reached", nil, failing(errUnreachable), state{}, errUnreachable},
		{"inactive, ignored entirely", nil, file(broken), state{"", 0, "1 warning"}, nil},
		{"active, a syntax error", []Source{file(clean("A"))}, file(broken), state{"A", 1, "1 warning"}, nil},
		{"active, an unknown version", []Source{file(clean("A"))}, file(unknown), state{"A", 1, "1 warning"}, nil},
		{"findings, then ignored entirely", []Source{file(warned("A"))}, file(unknown), state{"", 1, "1 warning"}, nil},
		{"active, too large", []Source{file(clean("A"))}, failing(&TooLargeError{Size: manifest.MaxSize + 1}), state{"A", 1, "1 warning"}, nil},
		{"active, a zip that Ghost takes and we do not", []Source{file(clean("A"))}, failing(errTooMany), state{"A", 1, "1 warning"}, nil},
		{"active, clean but without curation", []Source{file(clean("A"))}, file("manifest_version: 1\n"), state{"", 0, "Valid"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			each(t, func(t *testing.T, s *Service) {
				for _, source := range test.before {
					if _, err := s.Take(t.Context(), "nightly", source); err != nil {
						t.Fatalf("error %v, want none", err)
					}
				}
				report, err := s.Take(t.Context(), "nightly", test.source)
				if !errors.Is(err, test.err) {
					t.Errorf("%v, want %v", err, test.err)
				}
				if err == nil && (report.Findings == nil || report.Status != orNone(test.want.Status)) {
					t.Errorf("reported %+v", report)
				}
				if diff := cmp.Diff(test.want, stateOf(t, s)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A theme that declares no event types has those of the operator. One with a manifest that is wrong has not: its findings
// say what to do.
func TestFallbackEvents(t *testing.T) {
	fallback := manifest.Parse([]byte("manifest_version: 1\nevents: {types: {any: {post_template: custom-any}, other: {post_template: custom-any}}}\n")).Manifest.Events
	for name, test := range map[string]struct {
		source   Source // of the theme, nil if it was never seen
		fallback *manifest.Events
		types    int
		err      error
	}{
		"not seen":                        {nil, fallback, 2, nil},
		"not seen, and there are none":    {nil, nil, 0, ErrNotFound},
		"without manifest":                {failing(ErrNoManifest), fallback, 2, nil},
		"with a manifest without events":  {file("manifest_version: 1\n"), fallback, 2, nil},
		"with one that is broken":         {file(broken), fallback, 0, nil},
		"with event types of its own":     {file(clean("A")), fallback, 1, nil},
		"with some, and there are others": {file(clean("A")), nil, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *Service) {
				s.Fallback = test.fallback
				if test.source != nil {
					if _, err := s.Take(t.Context(), "nightly", test.source); err != nil {
						t.Fatalf("s.Take: %v", err)
					}
				}
				got, findings, err := s.Events(t.Context(), "nightly")
				types := 0
				if got != nil {
					types = len(got.Types)
				}
				if types != test.types || !errors.Is(err, test.err) || err == nil && findings == nil {
					t.Errorf("%d types, %v, %v, want %d, %v", types, findings, err, test.types, test.err)
				}
			})
		})
	}
}

// What is stored is what was parsed, in its order; sites and themes are apart.
func TestStoreKeepsWhatWasParsed(t *testing.T) {
	each(t, func(t *testing.T, s *Service) {
		for _, name := range []string{"z", "a"} {
			if _, err := s.Take(t.Context(), name, file(warned(name))); err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}
		list, err := s.Store.List(t.Context(), "daily", AllFindings)
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		var want []Summary
		for _, name := range []string{"a", "z"} {
			result := manifest.Parse([]byte(warned(name)))
			for i := range result.Findings { // places are not kept
				result.Findings[i].Line, result.Findings[i].Column = 0, 0
			}
			want = append(want, Summary{Name: name, Findings: result.Findings, Total: len(result.Findings), UpdatedAt: s.Now()})
			found, err := s.Find(t.Context(), name)
			theme := Theme{Site: "daily", Name: name, Manifest: result.Manifest, Findings: result.Findings, UpdatedAt: s.Now()}
			if diff := cmp.Diff(theme, found); diff != "" || err != nil {
				t.Errorf("Find: error %v, want none (-want +got):\n%s", err, diff)
			}
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if list, err := s.Store.List(t.Context(), "other", 30); err != nil || len(list) != 0 {
			t.Errorf("List = %v, %v, want no error, no list", list, err)
		}
	})
}

// Nothing of a removed site is left for the next one of its name, not even from an
// upload that ends later, and other sites keep theirs.
func TestRemovedSitesLeaveNoThemes(t *testing.T) {
	each(t, func(t *testing.T, s *Service) {
		other := *s
		other.Site = "other"
		for _, site := range []*Service{s, &other} {
			if _, err := site.Take(t.Context(), "nightly", file(clean("A"))); err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}
		store := s.Store.(*SQL)
		forget := func(context.Context) ([]byte, error) {
			return []byte(clean("B")), Schema.Forget(t.Context(), store.db, "daily")
		}
		if _, err := s.Take(t.Context(), "nightly", forget); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if list, err := store.List(t.Context(), "daily", 30); err != nil || len(list) != 0 {
			t.Errorf("List = %v, %v, want no error, no list", list, err)
		}
		if list, err := store.List(t.Context(), "other", 30); err != nil || len(list) != 1 {
			t.Errorf("List = %v, %v, want no error, 1 theme", list, err)
		}
	})
}

// A change that was begun earlier, and took longer, undoes none that was begun
// later: not one that stored another manifest, and not one that removed it.
func TestLateChange(t *testing.T) {
	for name, later := range map[string]Source{"stored": file(clean("B")), "removed": failing(ErrNoManifest)} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *Service) {
				var want state
				slow := func(context.Context) ([]byte, error) {
					if _, err := s.Take(t.Context(), "nightly", later); err != nil {
						t.Errorf("error %v, want none", err)
					}
					want = stateOf(t, s)
					return []byte(clean("A")), nil
				}
				report, err := s.Take(t.Context(), "nightly", slow)
				if err != nil || report.Status != "Valid" {
					t.Errorf(`Take = %+v, %v, want no error, status "Valid"`, report, err)
				}
				if diff := cmp.Diff(want, stateOf(t, s)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if _, err := s.Take(t.Context(), "nightly", file(clean("C"))); err != nil {
					t.Errorf("error %v, want none", err)
				}
				if diff := cmp.Diff(state{"C", 1, "Valid"}, stateOf(t, s)); diff != "" {
					t.Errorf("the next: %s", diff)
				}
			})
		})
	}
}

// An uploader learns what is wrong with a theme even if its manifest cannot be
// stored.
func TestStoreFails(t *testing.T) {
	each(t, func(t *testing.T, s *Service) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		report, err := s.Take(ctx, "nightly", file(warned("A")))
		if !errors.Is(err, context.Canceled) || report.Status != "1 warning" {
			t.Errorf(`Take = %+v, %v, want error %v, status "1 warning"`, report, err, context.Canceled)
		}
		if _, err := s.Refresh(t.Context(), "nightly"); !errors.Is(err, ErrNoRepository) {
			t.Errorf("error %v, want %v", err, ErrNoRepository)
		}
	})
}

// Of many uploads at once one wins, whole.
func TestConcurrentUploads(t *testing.T) {
	each(t, func(t *testing.T, s *Service) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if _, err := s.Take(context.Background(), "nightly", file(clean(fmt.Sprint("S", i)))); err != nil {
					t.Errorf("error %v, want none", err)
				}
			})
		}
		wg.Wait()
		theme, err := s.Store.Find(t.Context(), "daily", "nightly")
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if diff := cmp.Diff(theme.Manifest, theme.KnownGood); diff != "" {
			t.Errorf("half of one, half of another: %s", diff)
		}
	})
}
