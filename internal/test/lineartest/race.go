//go:build race

package lineartest

// Divisor is by what sizes are divided with the race detector, which slows work
// down some ten times. The tests without it look at the whole.
const Divisor = 8
