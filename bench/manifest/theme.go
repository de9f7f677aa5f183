package main

import (
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
)

// Its finding shows in the response to an upload that it was read.
const (
	aManifest = `manifest_version: 1
events:
  default_tags: [Events]
  types:
    webinar:
      post_template: custom-webinar
      required_fields: [name]
      custom_fields:
        - {key: speaker, type: text, required: true, max_length: 80}
    meetup: {post_template: custom-meetup, supported_fields: [seats]}
homepage_curation:
  sections:
    - key: top
      name: Top
      slots: [{key: lead, label: Lead, tag: "#lead"}]
`
	aFinding = `"field":"events.types.meetup.supported_fields[0]"`
)

// writeTheme makes a zip of a theme, with a manifest, and with images that cannot
// be compressed, so many that it has at least so many bytes. It returns how many
// it has.
func writeTheme(path string, theme fs.FS, size int64) (int64, error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	w := zip.NewWriter(file)
	add := func(name string, text []byte) error {
		content, err := w.Create(name)
		if err == nil {
			_, err = content.Write(text)
		}
		return err
	}
	if err := add("lychgate-manifest.yaml", []byte(aManifest)); err != nil {
		return 0, err
	}
	err = fs.WalkDir(theme, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(theme, path)
		if err != nil {
			return err
		}
		return add(path, text)
	})
	if err != nil {
		return 0, err
	}
	noise := rand.NewChaCha8([32]byte{})
	for i := 0; ; i++ {
		if err := w.Flush(); err != nil {
			return 0, err
		}
		written, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, err
		}
		if written >= size {
			break
		}
		image := make([]byte, min(1<<20, size-written))
		noise.Read(image)
		if err := add(fmt.Sprintf("assets/images/photo-%d.jpg", i), image); err != nil {
			return 0, err
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return file.Seek(0, io.SeekCurrent)
}
