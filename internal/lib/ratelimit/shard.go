package ratelimit

import "sync"

// ticks is a time since the limiter's start, or a span of time, counted in the
// resolution of its clock.
type ticks int64

// shard holds the allowances of some of the keys.
//
// Each key has a slot. Slots are linked into a ring in the order of their last
// requests, so that the key that was idle longest is found at once. Slot 0 has
// no key: the ring starts and ends there.
//
// No part of this has pointers for each key, so the garbage collector does not
// walk through a million of them.
type shard struct {
	mu       sync.Mutex
	requests int // the limit
	maxKeys  int
	byKey    map[Key]int32 // slots by key
	slots    []slot
	times    []uint32 // those of slot n end at n*requests
	unused   int32    // the first slot without a key, which names the next as newer; 0 for none
}

// slot is what a shard knows of one key.
type slot struct {
	key          Key
	older, newer int32 // neighbours in the ring of slots

	// The times of the requests that may still count are themselves a ring in
	// the slot's part of shard.times: count of them from head on, oldest first.
	// Their lower 32 bits are enough, because dropOld keeps them within two
	// windows of each other, which is less than 2^32 ticks.
	head, count uint16

	last ticks // when the last request was
}

// ask decides how long a request of key has to wait, and takes it if that is 0 and take is
// set.
func (s *shard) ask(key Key, now, window ticks, take bool) ticks {
	n := s.byKey[key]
	if n == 0 {
		if !take {
			return 0
		}
		n = s.add(key)
	}
	slot, times := &s.slots[n], s.timesOf(n)
	slot.dropOld(times, now, window)
	if int(slot.count) == s.requests {
		return window - slot.age(times, now)
	}
	if take {
		free := int(slot.head) + int(slot.count)
		if free >= s.requests {
			free -= s.requests
		}
		times[free] = uint32(now)
		slot.count++
		slot.last = now
		s.unlink(n)
		s.linkNewest(n)
	}
	return 0
}

// fill sets the times of a key's requests, count of them, the oldest first.
func (s *shard) fill(key Key, count int, at func(i int) ticks) {
	n := s.byKey[key]
	if n == 0 {
		n = s.add(key)
	}
	slot, times := &s.slots[n], s.timesOf(n)
	for i := range count {
		times[i] = uint32(at(i))
	}
	slot.head, slot.count, slot.last = 0, uint16(count), at(count-1)
	s.unlink(n)
	s.linkNewest(n)
}

// remove forgets a key, and returns how long ago its requests were, the oldest first.
func (s *shard) remove(key Key, now, window ticks) (ages []ticks) {
	n := s.byKey[key]
	if n == 0 {
		return nil
	}
	slot, times := &s.slots[n], s.timesOf(n)
	slot.dropOld(times, now, window)
	for ; slot.count > 0; slot.count-- {
		ages = append(ages, slot.age(times, now))
		slot.head = uint16((int(slot.head) + 1) % len(times))
	}
	s.drop(n)
	return ages
}

// dropIdle forgets up to limit keys without a request in the window.
func (s *shard) dropIdle(limit int, now, window ticks) {
	for range limit {
		if len(s.byKey) == 0 {
			return
		}
		oldest := s.slots[0].newer
		if now-s.slots[oldest].last < window {
			return
		}
		s.drop(oldest)
	}
}

// add gives key a slot, that of the key that was idle longest if there are maxKeys.
// The slot is in a ring of its own until the caller links it.
func (s *shard) add(key Key) int32 {
	if len(s.byKey) == s.maxKeys {
		s.drop(s.slots[0].newer)
	}
	if s.unused == 0 {
		s.grow()
	}
	n := s.unused
	s.unused = s.slots[n].newer
	s.slots[n] = slot{key: key, older: n, newer: n}
	s.byKey[key] = n
	return n
}

// drop forgets the key of slot n. With the last key, the memory is given back: a
// map does not shrink.
func (s *shard) drop(n int32) {
	s.unlink(n)
	delete(s.byKey, s.slots[n].key)
	s.slots[n].newer, s.unused = s.unused, n
	if len(s.byKey) == 0 {
		s.byKey, s.slots, s.times, s.unused = nil, nil, nil, 0
	}
}

// grow doubles the slots, up to maxKeys. Append would go beyond, which a large
// limit makes costly.
func (s *shard) grow() {
	if s.byKey == nil {
		s.byKey = make(map[Key]int32)
	}
	old := len(s.slots)
	size := min(2*old+8, s.maxKeys+1)
	s.slots = append(make([]slot, 0, size), s.slots...)[:size]
	s.times = append(make([]uint32, 0, (size-1)*s.requests), s.times...)[:(size-1)*s.requests]
	for n := size - 1; n >= max(1, old); n-- {
		s.slots[n].newer, s.unused = s.unused, int32(n)
	}
}

func (s *shard) timesOf(n int32) []uint32 {
	end := int(n) * s.requests
	return s.times[end-s.requests : end]
}

func (s *shard) unlink(n int32) {
	slot := s.slots[n]
	s.slots[slot.older].newer = slot.newer
	s.slots[slot.newer].older = slot.older
}

func (s *shard) linkNewest(n int32) {
	newest := s.slots[0].older
	s.slots[n].older, s.slots[n].newer = newest, 0
	s.slots[newest].newer = n
	s.slots[0].older = n
}

// dropOld forgets the requests that have left the window.
func (s *slot) dropOld(times []uint32, now, window ticks) {
	if now-s.last >= window {
		s.count = 0
	}
	for s.count > 0 && s.age(times, now) >= window {
		s.head = uint16((int(s.head) + 1) % len(times))
		s.count--
	}
}

// age is the time since the oldest request.
func (s *slot) age(times []uint32, now ticks) ticks {
	return ticks(uint32(now) - times[s.head])
}
