//go:build !linux && !darwin && !freebsd

package doctor

// freeBytes does not know how many bytes are free.
func freeBytes(string) (free uint64, known bool) { return 0, false }
