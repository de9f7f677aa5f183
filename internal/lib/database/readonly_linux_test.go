package database_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// A store on a disk that is mounted read-only is named, with what to do.
func TestOpenReadOnly(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=8m"); err != nil {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatalf("syscall.Mount: %v", err)
		}
		t.Skipf("needs to mount a file system, as root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Errorf("error %v, want none", err)
		}
	})
	if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	path := filepath.Join(folder, "lychgate.db")
	db, err := database.Open(t.Context(), database.SQLite, path)
	if err == nil {
		t.Fatalf("Open: got no error, want one (Close: %v)", db.Close())
	}
	want := "opening the sqlite store: " + path + " cannot be written: give it and its folder to the user that Caddy runs as, or write another path: open " + path + ": read-only file system"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
