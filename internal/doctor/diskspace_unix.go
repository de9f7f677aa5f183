//go:build linux || darwin || freebsd

package doctor

import "syscall"

// freeBytes counts what is free for those who are not root.
func freeBytes(path string) (free uint64, known bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return 0, false
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), true //nolint:unconvert // of other types elsewhere
}
