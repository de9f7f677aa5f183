package outbox

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Staff are told in sentences why a write is pending, without the errors of networks and servers.
func TestStaffReadWhyAWriteIsPending(t *testing.T) {
	for problem, want := range map[string]string{
		"": "",
		"asking Ghost: dial tcp 127.0.0.1:2368: connect: connection refused": platform.ReasonUnanswered,
		"Ghost answers 503 InternalServerError":                              platform.ReasonUnanswered,
		context.DeadlineExceeded.Error():                                     platform.ReasonUnanswered,
		"the platform rejects the key: Ghost answers 401 UnauthorizedError":  platform.ReasonKeyRejected,
		work.ErrPaused.Error():                                               "It has not answered lately, so this was not tried.",
		work.ErrBusy.Error():                                                 "Many platforms do not answer, so this was not tried yet.",
		appliedAgain:                                                         "It has the write, and gets it once more, because an earlier attempt had no response.",
		(&awaitedError{time.Now()}).Error():                                  "An earlier attempt had no response, and may still arrive.",
		fmt.Errorf("deleting: %w", &platform.Refusal{Reason: "The member is locked."}).Error(): "The member is locked.",
		(&members.TakenError{Reason: "Member already exists."}).Error():                        "Member already exists.",
	} {
		if got := Sentence(problem); got != want {
			t.Errorf("%q: got %q, want %q", problem, got, want)
		}
	}
}
