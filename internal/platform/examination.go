package platform

import (
	"context"
	"time"
)

// Examiner is a Platform that can say how it is.
type Examiner interface {
	// Examine asks the platform how it is, with the key. The error is for people, and
	// says what to fix.
	Examine(ctx context.Context) (Examination, error)
}

// Examination is what a platform says of itself.
type Examination struct {
	Name string // with the version, such as Ghost 6.22.0

	// Ahead is how far its clock is ahead of ours, to the second.
	Ahead time.Duration
}

// EventTester is an EventSource that can be made to send an event.
type EventTester interface {
	EventSource

	// TestEvents has the platform send an event that is about no member to a URL
	// with which Subscribe was called, and waits until it was answered. Nothing is left
	// of the test, also if ctx ends, which ends the wait. Missing
	// tells that webhooks of the URL were not there any more; they are registered
	// anew. Errors: *UndeliveredError.
	TestEvents(ctx context.Context, url string) (missing bool, err error)
}

// UndeliveredError means that an event did not arrive.
type UndeliveredError struct {
	Reason   string // a part of a sentence for people, such as: it was answered with 404
	Remedy   string // what to do, if the platform tells
	Answered bool   // by another than it was meant for
}

func (e *UndeliveredError) Error() string { return "the event did not arrive: " + e.Reason }
