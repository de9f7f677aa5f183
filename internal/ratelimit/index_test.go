package ratelimit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A key that the index loses has its allowance anew.
func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		model := make(map[int32]uint32) // slot → hash
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			slot := rapid.Int32Range(1, 60).Draw(t, "slot")
			if hash, there := model[slot]; there {
				x.remove(hash, slot)
				delete(model, slot)
			} else {
				// Few hashes, so that many collide, and some at the table's end.
				hash := rapid.SampledFrom([]uint32{0, 1, 2, 15, 16, 31, 1<<32 - 1, 7 << 20}).Draw(t, "hash")
				x.insert(hash, slot)
				model[slot] = hash
			}
			got := make(map[int32]uint32)
			for slot := int32(1); slot <= 60; slot++ {
				for _, hash := range []uint32{0, 1, 2, 15, 16, 31, 1<<32 - 1, 7 << 20} {
					if x.find(hash, func(n int32) bool { return n == slot }) == slot {
						got[slot] = hash
					}
				}
			}
			if diff := cmp.Diff(model, got); diff != "" || x.count != len(model) {
				t.Fatalf("%d slots, want %d: %s", x.count, len(model), diff)
			}
		}
	})
}
