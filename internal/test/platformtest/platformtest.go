// Package platformtest has a publishing platform in memory. It behaves as Ghost does, and
// fails on request in ways that a real one cannot be made to.
package platformtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/platform"
)

// Platform implements the interfaces of package platform. Its exported fields are for a caller
// who holds Mu, or while nobody else uses the platform.
type Platform struct {
	platform.ThemeHost // nil, for what is done with themes at upload: tests take Ghost's

	Mu sync.Mutex

	Members map[string]platform.Member // by ID
	URLs    []string                   // that webhook events are sent to

	// Posts are those that editors choose, newest first. Tags are theirs, by ID.
	Posts []platform.Post
	Tags  map[string][]string

	// Carriers are how many posts carried a tag after each change of it.
	Carriers map[string][]int

	EventsPosts map[string]platform.EventPost // by ID
	Firsts      []bool                        // isFirst of each AddPost

	Themes  []platform.InstalledTheme
	Visitor platform.Visitor // of the last Staff

	Location      platform.Location
	Examination   platform.Examination
	EventsMissing bool     // webhooks of the URL were removed
	Tested        []string // URLs of TestEvents

	// Before, if set, is called before each call, which it may delay. Mu is free then. Its
	// error is returned to the caller.
	Before func(ctx context.Context, call string) error

	// Now is the time of the posts' changes. Default: time.Now.
	Now func() time.Time

	fault func(call, of string) error
	asked map[string]int
	order []string // IDs of EventsPosts that were ever made
	next  int      // number of members that were ever made
}

// New returns a Platform that has nothing.
func New() *Platform {
	return &Platform{
		Members: make(map[string]platform.Member), Tags: make(map[string][]string), Carriers: make(map[string][]int),
		EventsPosts: make(map[string]platform.EventPost), Now: time.Now, asked: make(map[string]int),
	}
}

var (
	_ platform.EventTester = (*Platform)(nil)
	_ platform.BulkChanger = (*Platform)(nil)
	_ platform.EventHost   = (*Platform)(nil)
	_ platform.ThemeHost   = (*Platform)(nil)
	_ platform.Locator     = (*Platform)(nil)
	_ platform.Examiner    = (*Platform)(nil)
)

// Do calls work while nobody else uses the platform.
func (p *Platform) Do(work func()) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	work()
}

// ErrDown is the error of a platform that cannot be reached.
var ErrDown = errors.New("connection refused")

// lost is the error of a call that had its effect.
type lost struct{ error }

// Lost returns what a function that is passed to Fail returns to have a call take effect and
// its response be lost.
func Lost(err error) error { return lost{err} }

// Fail has fault called before each call, with the call's name and the ID or email that it is
// about. Its error is returned to the caller. Mu is held meanwhile. Nil ends all faults.
func (p *Platform) Fail(fault func(call, of string) error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.fault = fault
}

// Break makes each call fail with an error.
func (p *Platform) Break(err error) { p.Fail(func(string, string) error { return err }) }

// BreakCalls makes the calls with some names fail.
func (p *Platform) BreakCalls(err error, calls ...string) {
	p.Fail(func(call, _ string) error {
		if slices.Contains(calls, call) {
			return err
		}
		return nil
	})
}

// Hold has the calls with some names wait until release is called or their context ends. Each of
// the first 1,000 that waits is in waiting. Hold is called before the platform is used.
func (p *Platform) Hold(calls ...string) (waiting <-chan struct{}, release func()) {
	begun, released := make(chan struct{}, 1000), make(chan struct{})
	p.Before = func(ctx context.Context, call string) error {
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
func (p *Platform) Fix() { p.Fail(nil) }

// call makes a call.
func (p *Platform) call(ctx context.Context, name, of string, effect func() error) error {
	if p.Before != nil {
		if err := p.Before(ctx, name); err != nil {
			return err
		}
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	var fault error
	if p.fault != nil {
		fault = p.fault(name, of)
	}
	if response, isLost := errors.AsType[lost](fault); isLost {
		return errors.Join(response.error, effect())
	}
	if fault != nil {
		return fault
	}
	return effect()
}
