package ratelimit

// index finds slots by the hashes of their keys. It is a hash table with
// linear probing, and there for its size: 8 bytes a cell, without the keys,
// which the slots hold anyway. With a million keys that is what a processor's
// cache can still hold, while a map of keys costs a wait for memory at nearly
// every request.
//
// The zero value is empty.
type index struct {
	cells []cell // a power of two of them, or none
	count int
}

// cell holds a slot's number; zero is an empty cell.
type cell struct {
	hash uint32
	slot int32
}

// find returns the slot with this hash for which same is true, or 0.
func (x *index) find(hash uint32, same func(slot int32) bool) int32 {
	if x.count == 0 {
		return 0
	}
	for at := x.home(hash); x.cells[at].slot != 0; at = x.after(at) {
		if c := x.cells[at]; c.hash == hash && same(c.slot) {
			return c.slot
		}
	}
	return 0
}

// insert adds a slot, which must not be there, and not be 0.
func (x *index) insert(hash uint32, slot int32) {
	if 4*x.count >= 3*len(x.cells) {
		x.grow()
	}
	at := x.home(hash)
	for x.cells[at].slot != 0 {
		at = x.after(at)
	}
	x.cells[at] = cell{hash, slot}
	x.count++
}

// remove takes out a slot, which must be there.
func (x *index) remove(hash uint32, slot int32) {
	gap := x.home(hash)
	for x.cells[gap].slot != slot {
		gap = x.after(gap)
	}
	// Whatever was pushed over the gap from its home moves back into it, so
	// that no search stops short.
	for at := x.after(gap); x.cells[at].slot != 0; at = x.after(at) {
		if x.distance(x.home(x.cells[at].hash), at) >= x.distance(gap, at) {
			x.cells[gap] = x.cells[at]
			gap = at
		}
	}
	x.cells[gap] = cell{}
	x.count--
}

func (x *index) grow() {
	old := x.cells
	*x = index{cells: make([]cell, max(16, 2*len(old)))}
	for _, c := range old {
		if c.slot != 0 {
			x.insert(c.hash, c.slot)
		}
	}
}

func (x *index) home(hash uint32) int      { return int(hash) & (len(x.cells) - 1) }
func (x *index) after(at int) int          { return (at + 1) & (len(x.cells) - 1) }
func (x *index) distance(from, to int) int { return (to - from) & (len(x.cells) - 1) }
