package themes

import (
	"fmt"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// Report is a manifest and what is wrong with it.
type Report struct {
	Status   string             `json:"status"` // as Status says, or NoManifest
	Findings []manifest.Finding `json:"_errors"`
	Manifest *manifest.Manifest `json:"manifest"` // what is left of it; nil if it is ignored entirely, or there is none
}

// NoManifest is the status of a theme without a manifest.
const NoManifest = "No manifest"

// NotSeen is the status of a theme that was on the platform before this could read it, or came there another way.
const NotSeen = "Not seen yet"

func newReport(m *manifest.Manifest, findings []manifest.Finding) Report {
	return Report{Status: Status(len(findings)), Findings: findings, Manifest: m}
}

// Status is what the Manifest Status column reads: a count of warnings that
// includes the errors, unless there is no finding.
func Status(findings int) string {
	switch findings {
	case 0:
		return "Valid"
	case 1:
		return "1 warning"
	}
	return fmt.Sprintf("%d warnings", findings)
}
