package themes

import (
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// What the platform's admin shows of a manifest is bounded, for a dialog that is read by
// people. All findings are in `_errors`.
const (
	maxNoticed        = 50
	maxNoticedWhere   = 120 // code points
	maxNoticedMessage = 400
)

// notice is what the platform's admin tells the uploader of a theme. It is nil if
// that is off, and where there is nothing to tell.
func (h *API) notice(report themes.Report, kept *themes.Theme) *platform.UploadNotice {
	if h.OmitsNotice || len(report.Findings) == 0 {
		return nil
	}
	return &platform.UploadNotice{
		Title:    "Theme manifest: " + english.Plural(len(report.Findings), "finding", ""),
		Meaning:  meaning(report, kept),
		Findings: notedFindings(report.Findings),
	}
}

// meaning says what becomes of event types and of Homepage Curation, with a manifest that
// has findings.
func meaning(report themes.Report, kept *themes.Theme) string {
	const again = " Upload the theme again when its manifest is fixed."
	if kept == nil {
		return "What was in use before stays in use." + again
	}
	var text string
	switch {
	case report.Manifest == nil && kept.Events() != nil:
		text = "This manifest is not in use. Event types stay those of the manifest before it."
	case report.Manifest == nil:
		text = "This manifest is not in use, so the theme has no event types."
	case report.Manifest.Events == nil:
		text = "The theme has no event types."
	default:
		text = "Event types are those that are valid in this manifest."
	}
	if kept.Curation() != nil {
		text += " Homepage Curation goes on with the last manifest that had no finding."
	} else {
		text += " Homepage Curation is inactive: it needs a manifest without findings."
	}
	return text + again
}

// notedFindings clips findings for people, and numbers those at the same place.
func notedFindings(findings []manifest.Finding) []platform.NoticedFinding {
	list := make([]platform.NoticedFinding, 0, min(len(findings), maxNoticed+1))
	taken := make(map[string]int)
	for _, finding := range findings[:min(len(findings), maxNoticed)] {
		where := clip.Text(finding.Field, maxNoticedWhere)
		if finding.Line > 0 {
			where += fmt.Sprintf(", line %d", finding.Line)
		}
		taken[where]++
		if n := taken[where]; n > 1 {
			where += fmt.Sprintf(" (%d)", n)
		}
		list = append(list, platform.NoticedFinding{Where: where, Message: clip.Text(finding.Message, maxNoticedMessage)})
	}
	if more := len(findings) - len(list); more > 0 {
		list = append(list, platform.NoticedFinding{Where: "…", Message: "and " + english.Plural(more, "more finding", "")})
	}
	return list
}
