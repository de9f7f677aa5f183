package edge

import "sync/atomic"

// runningNow is the edge that runs, for the metrics, which belong to the process.
var runningNow atomic.Pointer[runningEdge]

type runningEdge struct {
	uses     *Uses
	previous *runningEdge // that ran before
}

func (r *runningEdge) start() { r.previous = runningNow.Swap(r) }

// before is nil for the first edge of the process.
func (r *runningEdge) before() *Uses {
	if r.previous == nil {
		return nil
	}
	return r.previous.uses
}

// stop has the edge before run on if this one could not be started.
func (r *runningEdge) stop() {
	runningNow.CompareAndSwap(r, r.previous)
	r.previous = nil
	if now := runningNow.Load(); now != nil && now.previous == r {
		now.previous = nil // and this one does not
	}
}
