package themes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// Open reads the manifest of what is at a path of this computer: a theme's
// folder, a zip of it, or a manifest of any name. fileName is what the manifest
// is called in a folder or a zip. A zip is what says so by its name or starts
// like one; of such, the path of the File starts with that of the zip.
//
// The error is one of ReadZip, or wraps that of the operating system.
func Open(name, fileName string) (File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return File{}, err
	}
	if info.IsDir() {
		folder := name
		name = filepath.Join(name, fileName)
		switch info, err = os.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			entries, err := os.ReadDir(folder)
			for _, entry := range entries {
				if manifest.IsMisnamed(entry.Name(), fileName) {
					return File{}, &MisnamedError{filepath.Join(folder, entry.Name()), fileName}
				}
			}
			return File{}, cmp.Or(err, ErrNoManifest)
		case err != nil:
			return File{}, err
		case info.Mode()&fs.ModeSymlink != 0: // nor is one read from a zip or a repository
			return File{}, fmt.Errorf("%s is a symbolic link; put the file itself there", name)
		case !info.Mode().IsRegular():
			return File{}, fmt.Errorf("%s is not a file; put a file there", name)
		}
		return openFile(name, info, "")
	}
	return openFile(name, info, fileName)
}

// openFile reads a manifest, or a zip if there is the name of a file to look for
// in it.
func openFile(name string, info fs.FileInfo, fileName string) (File, error) {
	file, err := os.Open(name)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, manifest.MaxSize+1))
	if err != nil {
		return File{}, err
	}
	if fileName != "" && isZip(name, text) {
		if !info.Mode().IsRegular() {
			return File{}, errors.New("a zip that does not come from a file; save it first")
		}
		found, err := ReadZip(file, info.Size(), fileName)
		if tooLarge := (*TooLargeError)(nil); errors.As(err, &tooLarge) {
			tooLarge.Path = filepath.Join(name, tooLarge.Path)
		}
		found.Path = filepath.Join(name, found.Path)
		return found, err
	}
	if len(text) <= manifest.MaxSize {
		return File{Path: name, Text: text}, nil
	}
	tooLarge := &TooLargeError{Path: name}
	if info.Mode().IsRegular() && info.Size() > manifest.MaxSize {
		tooLarge.Size = info.Size()
	}
	return File{}, tooLarge
}

// isZip reports whether a file is a zip, as its name says or its first bytes.
func isZip(name string, start []byte) bool {
	return strings.EqualFold(filepath.Ext(name), ".zip") || bytes.HasPrefix(start, []byte("PK\x03\x04")) || bytes.HasPrefix(start, []byte("PK\x05\x06"))
}
