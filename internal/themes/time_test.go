package themes

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// Nobody can keep the edge busy with a zip: with its list of files, or with what
// looks like files in what goes by.
func TestTimeIsLinear(t *testing.T) {
	const fileName = "lychgate-manifest.yaml"
	long := strings.Repeat("a", 380)
	for _, test := range []struct {
		name  string
		entry func(i int) string
		size  int // of the list of files, in bytes
	}{
		{"files", func(i int) string { return strconv.Itoa(i) }, 500 << 10},
		{"files with long names", func(i int) string { return long + strconv.Itoa(i) }, 1 << 20},
		{"files with very long names", func(i int) string { return strings.Repeat("a", 60_000) + strconv.Itoa(i) }, 1 << 20},
		{"files in deep folders", func(i int) string { return strings.Repeat("a/", 30_000) + strconv.Itoa(i) }, 1 << 20},
		{"themes in deep folders", func(i int) string { return strconv.Itoa(i) + strings.Repeat("/a", 200) + "/index.hbs" }, 1 << 20},
		{"themes in folders with long names", func(i int) string { return long + strconv.Itoa(i) + "/index.hbs" }, 1 << 20},
		{"manifests", func(i int) string { return strconv.Itoa(i) + "/" + fileName }, 500 << 10},
		{"the same manifest", func(int) string { return fileName }, 500 << 10},
		{"folders", func(i int) string { return strconv.Itoa(i) + "/" }, 500 << 10},
		{"slashes", func(i int) string { return strconv.Itoa(i) + strings.Repeat("/", 300) }, 1 << 20},
		{"the other slashes", func(i int) string { return strconv.Itoa(i) + strings.Repeat(`\`, 300) }, 1 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			lineartest.Check(t, test.size, func(size int) []byte {
				var b bytes.Buffer
				w := zip.NewWriter(&b)
				for i, listed := 0, 0; listed < size && i < MaxEntries; i++ {
					name := test.entry(i)
					listed += 46 + len(name)
					if _, err := w.CreateHeader(&zip.FileHeader{Name: name}); err != nil {
						t.Fatalf("error %v, want none", err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatalf("error %v, want none", err)
				}
				return b.Bytes()
			}, func(text []byte) {
				_, _ = ReadZip(bytes.NewReader(text), int64(len(text)), fileName)
				s := NewZipScanner(fileName)
				_, _ = s.Write(text)
				_, _ = s.Manifest()
			})
		})
	}
	header := "PK\x03\x04" + strings.Repeat("\x00", 22) + "\x16\x00\x00\x00"
	for _, part := range []string{"a", "P", "PK", "PK\x03\x04", header, header + fileName, header + "a", "PK\x05\x06", "PK\x06\x07PK\x05\x06"} {
		for _, piece := range []int{1 << 20, 4096} {
			t.Run(fmt.Sprintf("%q in pieces of %d bytes", part, piece), func(t *testing.T) {
				lineartest.Check(t, 2<<20, func(size int) []byte { return bytes.Repeat([]byte(part), size/len(part)) }, func(text []byte) {
					s := NewZipScanner(fileName)
					for len(text) > 0 {
						n, _ := s.Write(text[:min(len(text), piece)])
						text = text[n:]
					}
					_, _ = s.Manifest()
				})
			})
		}
	}
}
