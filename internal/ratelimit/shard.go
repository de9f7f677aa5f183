package ratelimit

import "sync"

// ticks is a time since the limiter's start, or a span of time, counted in the
// resolution of its clock.
type ticks int64

// shard holds the allowances of some of the keys.
//
// Each key has a slot. Slots are numbered from 1, and linked into a ring in the
// order of their last requests, so that the key that was idle longest is found
// at once. Number 0 is where the ring starts and ends.
type shard struct {
	mu       sync.Mutex
	requests int // the limit
	maxKeys  int
	index    index // the slots that hold a key
	ends     slot  // number 0
	chunks   []chunk
	unused   []int32 // the slots that hold none
}

// chunk holds slots and the times of their requests. Memory grows by whole
// chunks, so that growing never copies.
type chunk struct {
	slots []slot
	times []uint32
}

// chunkSize returns how many slots a chunk has: 64, or as many as have 4096
// times between them, so that a large limit does not make a chunk large.
func (s *shard) chunkSize() int { return max(1, min(64, 4096/s.requests)) }

// slot is what is held of one key.
type slot struct {
	key          Key
	hash         uint32 // of the key
	older, newer int32  // neighbours in the ring of slots

	// The times of the requests that may still count are themselves a ring in
	// the slot's part of chunk.times: count of them from head on, oldest first.
	// Their lower 32 bits are enough, because dropOld keeps them within two
	// windows of each other, which is less than 2^32 ticks.
	head, count uint16

	last ticks // when the last request was
}

// ask returns how long to wait for a request of key, and takes it if there is
// nothing to wait for and take is set.
func (s *shard) ask(key Key, hash uint32, now, window ticks, take bool) ticks {
	n := s.find(key, hash)
	if n == 0 {
		if !take {
			return 0
		}
		n = s.add(key, hash)
	}
	slot, times := s.slot(n), s.times(n)
	slot.dropOld(times, now, window)
	if int(slot.count) == s.requests {
		return window - slot.age(times, now)
	}
	if take {
		times[(int(slot.head)+int(slot.count))%s.requests] = uint32(now)
		slot.count++
		slot.last = now
		s.unlink(n)
		s.linkNewest(n)
	}
	return 0
}

// find returns the slot of key, or 0.
func (s *shard) find(key Key, hash uint32) int32 {
	return s.index.find(hash, func(n int32) bool { return s.slot(n).key == key })
}

// fill sets the times of a key's requests, count of them, the oldest first.
func (s *shard) fill(key Key, hash uint32, count int, at func(i int) ticks) {
	n := s.find(key, hash)
	if n == 0 {
		n = s.add(key, hash)
	}
	slot, times := s.slot(n), s.times(n)
	for i := range count {
		times[i] = uint32(at(i))
	}
	slot.head, slot.count, slot.last = 0, uint16(count), at(count-1)
	s.unlink(n)
	s.linkNewest(n)
}

// remove forgets a key, and returns how long ago its requests were, the oldest first.
func (s *shard) remove(key Key, hash uint32, now, window ticks) (ages []ticks) {
	n := s.find(key, hash)
	if n == 0 {
		return nil
	}
	slot, times := s.slot(n), s.times(n)
	slot.dropOld(times, now, window)
	for ; slot.count > 0; slot.count-- {
		ages = append(ages, slot.age(times, now))
		slot.head = uint16((int(slot.head) + 1) % len(times))
	}
	s.drop(n)
	return ages
}

// dropIdle forgets keys without a request in the window, up to so many: with two for
// each request, they go faster than they come.
func (s *shard) dropIdle(most int, now, window ticks) {
	for range most {
		if s.index.count == 0 {
			return
		}
		oldest := s.slot(0).newer
		if now-s.slot(oldest).last < window {
			return
		}
		s.drop(oldest)
	}
}

// add gives key a slot, the one of the key that was idle longest if need be.
func (s *shard) add(key Key, hash uint32) int32 {
	if s.index.count == s.maxKeys {
		s.drop(s.slot(0).newer)
	}
	if len(s.unused) == 0 {
		s.grow()
	}
	last := len(s.unused) - 1
	n := s.unused[last]
	s.unused = s.unused[:last]
	*s.slot(n) = slot{key: key, hash: hash}
	s.linkNewest(n)
	s.index.insert(hash, n)
	return n
}

// drop forgets the key of slot n. The last one gives the memory back too.
func (s *shard) drop(n int32) {
	s.unlink(n)
	s.index.remove(s.slot(n).hash, n)
	s.unused = append(s.unused, n)
	if s.index.count == 0 {
		s.index, s.chunks, s.unused = index{}, nil, nil
	}
}

func (s *shard) grow() {
	size := s.chunkSize()
	first := len(s.chunks)*size + 1
	s.chunks = append(s.chunks, chunk{make([]slot, size), make([]uint32, size*s.requests)})
	for n := first + size - 1; n >= first; n-- {
		s.unused = append(s.unused, int32(n))
	}
}

func (s *shard) slot(n int32) *slot {
	if n == 0 {
		return &s.ends
	}
	size := s.chunkSize()
	return &s.chunks[(int(n)-1)/size].slots[(int(n)-1)%size]
}

func (s *shard) times(n int32) []uint32 {
	size := s.chunkSize()
	from := (int(n) - 1) % size * s.requests
	return s.chunks[(int(n)-1)/size].times[from : from+s.requests]
}

func (s *shard) unlink(n int32) {
	slot := s.slot(n)
	s.slot(slot.older).newer = slot.newer
	s.slot(slot.newer).older = slot.older
}

func (s *shard) linkNewest(n int32) {
	slot, ends := s.slot(n), s.slot(0)
	slot.older, slot.newer = ends.older, 0
	s.slot(ends.older).newer = n
	ends.older = n
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

// age returns how long ago the oldest request was.
func (s *slot) age(times []uint32, now ticks) ticks {
	return ticks(uint32(now) - times[s.head])
}
