// Package trouble finds the sites that need an operator, and why, among many thousands.
//
// It keeps no books of its own: each state is read from what a part of Lychgate keeps anyway, with
// a query for all sites together.
package trouble

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is what is wrong with a site.
type State string

// The states. docs/sites.md and docs/admin_openapi.yaml have all of them.
const (
	// KeyRejected means that the platform responds, and rejects the site's key.
	KeyRejected State = "key_rejected"

	// PlatformAway means that the platform does not respond, or not as it should.
	PlatformAway State = "platform_away"

	// WritesPending means that something that was written here is not on the platform for longer
	// than PendingAfter.
	WritesPending State = "writes_pending"

	// WritesPaused means that an edge tries no writes but a probe now and then, since too many
	// had no response. Each edge knows it of itself alone.
	WritesPaused State = "writes_paused"

	// WebhookMissing means that the webhooks of the site could not be registered, or that the platform sends
	// none; each edge knows the latter of itself alone.
	WebhookMissing State = "webhook_missing"

	// ManifestFindings means that the manifest of a theme has findings.
	ManifestFindings State = "manifest_findings"

	// ThemeUnreadable means that the repository of a theme could not be read the last time.
	ThemeUnreadable State = "theme_unreadable"

	// KeysLocked means that an edge cannot open the keys of a site in the store. Each edge knows
	// it of itself alone.
	KeysLocked State = "keys_locked"

	// CertificateFailing means that a certificate for a host of the site could not be had, or not be
	// renewed. Each edge knows it of itself alone.
	CertificateFailing State = "certificate_failing"
)

// States are all, in the order in which they are shown. One more is one more here, and a [Source].
var States = []State{KeyRejected, PlatformAway, KeysLocked, CertificateFailing, WritesPending, WritesPaused, WebhookMissing, ManifestFindings, ThemeUnreadable}

// Failing stands for any of the states.
const Failing State = "failing"

// Parse reads a state, or Failing. The error says what to write.
func Parse(text string) (State, error) {
	if of := State(text); of == Failing || slices.Contains(States, of) {
		return of, nil
	}
	names := make([]string, len(States))
	for i, of := range States {
		names[i] = string(of)
	}
	return "", fmt.Errorf("state %.80q: write %s, or one of %s", text, Failing, strings.Join(names, ", "))
}

// PendingAfter is how long a write may be pending before its site is in trouble: longer than a
// restart of a Ghost takes, and the backoff after it.
const PendingAfter = 5 * time.Minute

// Reason is why a site is in trouble.
type Reason struct {
	State State `json:"state"`

	// Since is nil where it is not known.
	Since *time.Time `json:"since,omitempty"`

	// Problem is for people.
	Problem string `json:"problem,omitempty"`

	// Pending is how many members and other things are pending.
	Pending int `json:"pending,omitempty"`

	// ThisEdge means that it is so at the edge that was asked. All else is so for the fleet.
	ThisEdge bool `json:"this_edge,omitempty"`
}

// Site is a site in trouble.
type Site struct {
	Name string `json:"name"`

	// LastContact is when its platform last took a request and its key, up to an hour early. Nil
	// if that is not known.
	LastContact *time.Time `json:"last_contact,omitempty"`

	Reasons []Reason `json:"reasons"`
}
