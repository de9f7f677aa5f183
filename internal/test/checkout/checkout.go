// Package checkout finds files of this repository for tests, also in binaries that were built with -trimpath.
package checkout

import (
	"bytes"
	"os"
	"path/filepath"
)

// root is the folder of the repository, which the folder that a process starts in is in.
var root = func() string {
	folder, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for at := folder; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/lychgate/caddy-lychgate\n")) {
			return at
		}
		if at == filepath.Dir(at) {
			panic(folder + " is not in a checkout of Lychgate")
		}
	}
}()

// Path is that of a file or folder of the repository.
func Path(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
