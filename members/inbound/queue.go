package inbound

import (
	"sync"
	"time"
)

// maxEvents bounds the members of a site that are to be refreshed.
const maxEvents = 10_000

// Queue holds the members of a site to be refreshed. An event is no more than a hint:
// several of one member are one. A reload hands it over, since events that were acknowledged
// are not sent again.
type Queue struct {
	mu    sync.Mutex
	ids   map[string]attempt // by the platform's
	owner func()             // refreshes what is in it
}

// setOwner is called by the Sync that refreshes the members from now on.
func (q *Queue) setOwner(refresh func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner = refresh
}

// askOwner leaves what is in the queue to its owner.
func (q *Queue) askOwner() {
	q.mu.Lock()
	refresh := q.owner
	q.mu.Unlock()
	refresh()
}

// attempt is the next one to refresh a member.
type attempt struct {
	notBefore time.Time
	failures  int // of those before
}

// add adds a member after an event. It reports false if there are too many.
func (q *Queue) add(id string, notBefore time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.put(id, attempt{notBefore: notBefore})
}

// addAgain adds a member that was removed to be refreshed, unless an event has. It reports false if
// there are too many.
func (q *Queue) addAgain(id string, a attempt) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, isNew := q.ids[id]; isNew {
		return true
	}
	return q.put(id, a)
}

// put adds a member. The caller holds the lock.
func (q *Queue) put(id string, a attempt) bool {
	if len(q.ids) >= maxEvents {
		return false
	}
	if q.ids == nil {
		q.ids = make(map[string]attempt)
	}
	q.ids[id] = a
	return true
}

// due removes and returns the members that are due.
func (q *Queue) due(now time.Time) map[string]attempt {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := make(map[string]attempt)
	for id, a := range q.ids {
		if !a.notBefore.After(now) {
			due[id] = a
			delete(q.ids, id)
		}
	}
	if len(q.ids) == 0 {
		q.ids = nil // a map keeps its size
	}
	return due
}

// next is when the next member is due, zero if there is none.
func (q *Queue) next() (when time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isFirst := true
	for _, a := range q.ids {
		if isFirst || a.notBefore.Before(when) {
			when, isFirst = a.notBefore, false
		}
	}
	return when
}

func (q *Queue) isEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ids) == 0
}
