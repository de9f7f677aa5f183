package platform

import "errors"

// What staff read of a failure of which the platform says nothing that they could use.
const (
	ReasonUnanswered  = "It does not answer as it should."
	ReasonKeyRejected = "It does not take the key that Lychgate has for it: whoever runs Lychgate has to write the right one."
)

// ReasonOf is what staff read of a failure. They make nothing of "context deadline exceeded".
func ReasonOf(err error) string {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Reason
	}
	if errors.Is(err, ErrKeyRejected) {
		return ReasonKeyRejected
	}
	return ReasonUnanswered
}
