package inbound

import (
	"sync"
	"time"
)

// maxEvents bounds the members of a site that are to be refreshed.
const maxEvents = 10_000

// queue holds the members to be refreshed. An event is no more than a hint:
// several of one member are one.
type queue struct {
	mu  sync.Mutex
	ids map[string]time.Time // the platform's → not before
}

// add reports false if there are too many.
func (q *queue) add(id string, notBefore time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ids) >= maxEvents {
		return false
	}
	if q.ids == nil {
		q.ids = make(map[string]time.Time)
	}
	q.ids[id] = notBefore
	return true
}

// due removes and returns the members that are due.
func (q *queue) due(now time.Time) (ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, notBefore := range q.ids {
		if !notBefore.After(now) {
			ids = append(ids, id)
			delete(q.ids, id)
		}
	}
	if len(q.ids) == 0 {
		q.ids = nil // a map keeps its size
	}
	return ids
}

func (q *queue) isEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ids) == 0
}
