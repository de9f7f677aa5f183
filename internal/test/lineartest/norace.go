//go:build !race

package lineartest

const divisor = 1
