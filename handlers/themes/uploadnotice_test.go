package themes

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Anyone who uploads a theme with findings is told what becomes of event types and of Homepage
// Curation, and of each finding where it is.
func TestUploadersAreToldOfFindings(t *testing.T) {
	declared := &manifest.Manifest{Events: &manifest.Events{}, Curation: &manifest.Curation{}}
	finding := manifest.Finding{Field: "events.types", Message: "wrong", Severity: manifest.Error, Line: 3}
	noted := []platform.NoticedFinding{{Where: "events.types, line 3", Message: "wrong"}}
	const again = " Upload the theme again when its manifest is fixed."
	for _, test := range []struct {
		name   string
		report themes.Report
		kept   *themes.Theme
		want   *platform.UploadNotice
	}{
		{"no finding", themes.Report{Manifest: declared}, &themes.Theme{Manifest: declared, KnownGood: declared}, nil},
		{"in part, never good", themes.Report{Manifest: declared, Findings: []manifest.Finding{finding}}, &themes.Theme{Manifest: declared}, &platform.UploadNotice{
			Title:    "Theme manifest: 1 finding",
			Meaning:  "Event types are those that are valid in this manifest. Homepage Curation is inactive: it needs a manifest without findings." + again,
			Findings: noted,
		}},
		{"in part, good before", themes.Report{Manifest: declared, Findings: []manifest.Finding{finding}}, &themes.Theme{Manifest: declared, KnownGood: declared}, &platform.UploadNotice{
			Title:    "Theme manifest: 1 finding",
			Meaning:  "Event types are those that are valid in this manifest. Homepage Curation goes on with the last manifest that had no finding." + again,
			Findings: noted,
		}},
		{"without event types", themes.Report{Manifest: &manifest.Manifest{}, Findings: []manifest.Finding{finding}}, &themes.Theme{Manifest: &manifest.Manifest{}, KnownGood: &manifest.Manifest{}}, &platform.UploadNotice{
			Title:    "Theme manifest: 1 finding",
			Meaning:  "The theme has no event types. Homepage Curation is inactive: it needs a manifest without findings." + again,
			Findings: noted,
		}},
		{"ignored, the first", themes.Report{Findings: []manifest.Finding{finding}}, &themes.Theme{}, &platform.UploadNotice{
			Title:    "Theme manifest: 1 finding",
			Meaning:  "This manifest is not in use, so the theme has no event types. Homepage Curation is inactive: it needs a manifest without findings." + again,
			Findings: noted,
		}},
		{"ignored, good before", themes.Report{Findings: []manifest.Finding{finding}}, &themes.Theme{Manifest: declared, KnownGood: declared}, &platform.UploadNotice{
			Title:    "Theme manifest: 1 finding",
			Meaning:  "This manifest is not in use. Event types stay those of the manifest before it. Homepage Curation goes on with the last manifest that had no finding." + again,
			Findings: noted,
		}},
		{"the store is away", themes.Report{Manifest: declared, Findings: []manifest.Finding{finding, {Field: "manifest", Message: "not stored"}}}, nil, &platform.UploadNotice{
			Title:    "Theme manifest: 2 findings",
			Meaning:  "What was in use before stays in use." + again,
			Findings: append(noted[:1:1], platform.NoticedFinding{Where: "manifest", Message: "not stored"}),
		}},
		{"two in one place, and long texts", themes.Report{Findings: []manifest.Finding{
			finding, finding, {Field: strings.Repeat("é", 200), Message: strings.Repeat("é", 500)},
		}}, nil, &platform.UploadNotice{
			Title:   "Theme manifest: 3 findings",
			Meaning: "What was in use before stays in use." + again,
			Findings: []platform.NoticedFinding{
				{Where: "events.types, line 3", Message: "wrong"},
				{Where: "events.types, line 3 (2)", Message: "wrong"},
				{Where: strings.Repeat("é", 120) + "…", Message: strings.Repeat("é", 400) + "…"},
			},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, new(API).notice(test.report, test.kept)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := (&API{OmitsNotice: true}).notice(test.report, test.kept); got != nil {
				t.Errorf("although it is off: %v", got)
			}
		})
	}
}

// A manifest full of mistakes does not fill the dialog, and the dialog's list has no key
// twice.
func TestNoticeOfManyFindings(t *testing.T) {
	var findings []manifest.Finding
	for i := range 10_000 {
		findings = append(findings, manifest.Finding{Field: "tags", Message: strconv.Itoa(i)})
	}
	got := new(API).notice(themes.Report{Findings: findings}, nil)
	places := make(map[string]bool)
	for _, finding := range got.Findings {
		places[finding.Where] = true
	}
	last := platform.NoticedFinding{Where: "…", Message: "and 9,950 more findings"}
	if diff := cmp.Diff(last, got.Findings[maxNoticed]); diff != "" || len(places) != maxNoticed+1 {
		t.Errorf("%s, %d places", diff, len(places))
	}
}
