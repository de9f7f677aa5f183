package recent

import (
	"testing"
	"testing/synctest"
	"time"
)

// What is kept is bounded, is forgotten after its time, and is never undone by a slower read.
func TestCacheIsBoundedAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[int, string](3, time.Second)
		for n := range 10 {
			c.Put(n, "x", time.Now())
			if len(c.entries) > 3 {
				t.Fatalf("%d entries, want 3 at most", len(c.entries))
			}
		}
		get := func(what string, key int, want string, isThere bool) {
			t.Helper()
			if got, ok := c.Get(key); got != want || ok != isThere {
				t.Errorf("%s: %q %t, want %q %t", what, got, ok, want, isThere)
			}
		}
		get("the last", 9, "x", true)
		get("one that is not there", 0, "", false)
		began := time.Now()
		time.Sleep(time.Millisecond)
		c.Put(9, "written", time.Now())
		c.Put(9, "read before", began)
		get("after a slow read", 9, "written", true)
		time.Sleep(time.Second)
		get("after its time", 9, "", false)
		c.Put(9, "read", time.Now())
		get("anew", 9, "read", true)
		c.Forget(9)
		get("forgotten", 9, "", false)
	})
}
