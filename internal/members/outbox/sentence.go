package outbox

import (
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// sentences are what staff are told of problems of this package.
var sentences = map[string]string{
	work.ErrPaused.Error(): "It has not answered lately, so this was not tried.",
	work.ErrBusy.Error():   "Many platforms do not answer, so this was not tried yet.",
	appliedAgain:           "It has the write, and gets it once more, because an earlier attempt had no response.",
}

// rejected begins the Problem of a write for which the platform rejects the key.
var rejected = platform.ErrKeyRejected.Error() + ": "

// Sentence says to staff what the Problem of a pending record is, which has the errors of networks for
// the operator. The store keeps no more than that text. "" is for no problem.
func Sentence(problem string) string {
	if sentence, isOwn := sentences[problem]; isOwn || problem == "" {
		return sentence
	}
	if strings.HasPrefix(problem, rejected) {
		return platform.ReasonKeyRejected
	}
	_, reason, isRefusal := strings.Cut(problem, new(platform.Refusal).Error())
	switch {
	case isRefusal:
		return reason
	case strings.HasPrefix(problem, awaited):
		return "An earlier attempt had no response, and may still arrive."
	}
	return platform.ReasonUnanswered
}
