// Package api is what all handlers share: who may send a request, how a body is read, how
// a response or a failure is written, and how a request is counted. It knows nothing of
// Caddy: what the edge knows about a request, such as the client's address, is handed in.
//
// The packages beside this one know the wire formats of docs/openapi.yaml: inbox the
// lookup of email providers, members the members API, themes the manifests of themes,
// events those of readers and of staff, desk the pages of the staff. They import this
// package and the domain, and not each other.
package api

import (
	"context"
	"net/http"
	"time"
)

// Outcome is what became of a request, for metrics.
type Outcome string

// The outcomes.
const (
	Done          Outcome = "done"
	Queued        Outcome = "queued"       // done here, and pending on the platform
	Replayed      Outcome = "replayed"     // done before, under the same Idempotency-Key
	Valid         Outcome = "valid"        // a manifest
	Findings      Outcome = "findings"     // a manifest with findings
	Removed       Outcome = "removed"      // a manifest that is no longer there
	Rejected      Outcome = "rejected"     // not done, for a reason that the caller is told
	NotFound      Outcome = "not_found"    //
	Unauthorized  Outcome = "unauthorized" // without a valid key or signature
	Forbidden     Outcome = "forbidden"    // without the session of staff who may
	TooMany       Outcome = "too_many"
	Unreachable   Outcome = "unreachable"    // a repository
	TokenRejected Outcome = "token_rejected" // by a repository
	RequestFailed Outcome = "request_failed" // by a repository
	Failed        Outcome = "failed"
	Other         Outcome = "other"
)

// Served is what became of a request.
type Served struct {
	Operation string
	Outcome   Outcome
}

// Next passes a request on to the platform.
type Next func(http.ResponseWriter, *http.Request) error

// graceAfterLeaving is how long the platform has to respond once the client has left: it
// may have done what was asked for all the same.
const graceAfterLeaving = 15 * time.Second

// Outlive derives a context that ends graceAfterLeaving after its parent.
func Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(graceAfterLeaving):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}
