package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// checkOutput refuses the path of a flag that is one of the store's own files.
func (s *siteStore) checkOutput(flag, path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if s.file != "" && isSameFile(path, s.file+suffix) {
			return fmt.Errorf("%s %s is a file of the store itself: write the path of another", flag, path)
		}
	}
	return nil
}

// isSameFile reports whether two paths are those of one file that is there.
func isSameFile(path, other string) bool {
	a, err := os.Stat(path)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}

// writeWhole makes or replaces a file that its owner alone can read, or leaves all
// as it was.
func writeWhole(path string, write func(io.Writer) error) (err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--output %s is not a file: write the path of one, or leave --output out for standard output", path)
	}
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--output %s: the folder %s does not exist: make it first", path, folder)
	}
	file, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
