package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/themes/git"
)

// Each error has the status that the pages promise, however often it is wrapped, and
// nothing that nobody foresaw is shown.
func TestFailureOf(t *testing.T) {
	for _, test := range []struct {
		err     error
		status  int
		outcome Outcome
		message string
	}{
		{&members.InvalidError{Message: "No.", Code: members.CodeRefused}, 200, Rejected, "No."},
		{members.ErrNotFound, 404, NotFound, "Member not found."},
		{members.ErrPrecondition, 412, Rejected, "The member was changed since it was read. Read it again."},
		{ErrNotAllowed, 405, Other, "The method is not allowed here."},
		{ErrTooLarge, 413, Other, "The request's body is too large."},
		{RateLimited("requests", 1500*time.Millisecond), 429, TooMany, "Too many requests. Try again in 2 s."},
		{inbound.ErrGone, 410, Other, "No webhook events are wanted at this address."},
		{inbound.ErrTooMany, 503, Other, "There are too many webhook events at once."},
		{platform.ErrForged, 401, Unauthorized, "The webhook event is not signed as it should be, or is old."},
		{platform.ErrMalformed, 400, Other, "The webhook event is not as the platform sends them: it must be JSON about a member."},
		{events.ErrTooFast, 429, TooMany, "This site made 120 events in the last minute. Wait a minute, and try again."},
		{events.ErrTooMany, 422, Rejected, "This site has 2000 drafts, which is the most. Delete or publish some of them first."},
		{themes.ErrNotFound, 404, NotFound, "The theme has no manifest."},
		{themes.ErrNoRepository, 404, NotFound, "The theme has no repository to be refreshed from."},
		{&git.Error{Kind: git.ErrRejected, Reason: "401"}, 502, TokenRejected, (&git.Error{Kind: git.ErrRejected, Reason: "401"}).Error()},
		{ErrNotStaff.For("Ghost"), 401, Forbidden, "Sign in to Ghost's admin on this site first."},
		{ErrStaffUnknown.For("Ghost"), 502, Failed, "Ghost could not be asked who you are. Try again."},
		{context.Canceled, 500, Other, "Internal error."},
		{errors.New("disk /var/lib/lychgate is full"), 500, Failed, "Internal error."},
	} {
		for _, err := range []error{test.err, fmt.Errorf("doing it: %w", test.err), errors.Join(test.err, errors.New("and another"))} {
			got := FailureOf(err)
			want := Failure{Status: test.status, Outcome: test.outcome, Message: test.message}
			want.Wait, want.IsUnforeseen = got.Wait, test.outcome == Failed && test.status == http.StatusInternalServerError
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v (-want +got): %s", err, diff)
			}
			if isLimited := test.status == http.StatusTooManyRequests; isLimited != (got.Wait > 0) {
				t.Errorf("%v: wait %s, want one: %t", err, got.Wait, isLimited)
			}
		}
	}
}
