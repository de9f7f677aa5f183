//go:build !race

package lineartest

// Divisor is by what sizes are divided with the race detector.
const Divisor = 1
