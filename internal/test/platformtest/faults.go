package platformtest

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// faults are how calls fail, of all that a Platform can do.
type faults struct {
	Mu sync.Mutex

	// Before, if set, is called before each call, which it may delay. Mu is free then. Its
	// error is returned to the caller.
	Before func(ctx context.Context, call string) error

	fault func(call, of string) error
}

// Do calls work while nobody else uses the platform.
func (f *faults) Do(work func()) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	work()
}

// ErrDown is the error of a platform that cannot be reached.
var ErrDown = errors.New("connection refused")

// lost is the error of a call that had its effect.
type lost struct{ error }

// Lost marks an error for Fail: the call takes effect, and its response is lost.
func Lost(err error) error { return lost{err} }

// Fail has fault called before each call, with the call's name and the ID or email that it is
// about. Its error is returned to the caller. Mu is held meanwhile. Nil ends all faults.
func (f *faults) Fail(fault func(call, of string) error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.fault = fault
}

// Break makes each call fail with an error.
func (f *faults) Break(err error) { f.Fail(func(string, string) error { return err }) }

// BreakCalls makes the calls with some names fail.
func (f *faults) BreakCalls(err error, calls ...string) {
	f.Fail(func(call, _ string) error {
		if slices.Contains(calls, call) {
			return err
		}
		return nil
	})
}

// Hold has the calls with some names wait until release is called or their context ends. Each of
// the first 1,000 that waits is in waiting. Hold is called before the platform is used.
func (f *faults) Hold(calls ...string) (waiting <-chan struct{}, release func()) {
	begun, released := make(chan struct{}, 1000), make(chan struct{})
	f.Before = func(ctx context.Context, call string) error {
		if !slices.Contains(calls, call) {
			return nil
		}
		select {
		case begun <- struct{}{}:
		default:
		}
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return begun, func() { close(released) }
}

// Fix ends all faults.
func (f *faults) Fix() { f.Fail(nil) }

// call makes a call.
func (f *faults) call(ctx context.Context, name, of string, effect func() error) error {
	if f.Before != nil {
		if err := f.Before(ctx, name); err != nil {
			return err
		}
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var fault error
	if f.fault != nil {
		fault = f.fault(name, of)
	}
	if response, isLost := errors.AsType[lost](fault); isLost {
		return errors.Join(response.error, effect())
	}
	if fault != nil {
		return fault
	}
	return effect()
}

// LoseResponses leaves all calls but FindByEmail, Get and GetAll without a response. If made is
// set, they take effect.
func (f *faults) LoseResponses(made bool) {
	err := context.DeadlineExceeded
	if made {
		err = Lost(err)
	}
	f.Fail(func(call, _ string) error {
		if call == "find" || call == "get" {
			return nil
		}
		return err
	})
}
