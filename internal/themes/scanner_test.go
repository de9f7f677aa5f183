package themes

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goBy shows a zip to a scanner, in pieces of a size.
func goBy(archive []byte, size int) (File, error) {
	s := NewZipScanner(name)
	for rest := archive; len(rest) > 0; {
		n := min(size, len(rest))
		s.Write(rest[:n])
		rest = rest[n:]
	}
	return s.Manifest()
}

// However the network cuts an upload, and wherever in a zip that is too large to
// be kept the manifest is, it is found.
func TestScanOfALargeZip(t *testing.T) {
	noise := make([]byte, keptEnd/3)
	rand.NewChaCha8([32]byte{}).Read(noise)
	image := func(i int) entry { return stored(fmt.Sprintf("assets/%d.jpg", i), noise) }
	manifest := entry{name: "theme/" + name, text: strings.Repeat("# text\n", 1000)}
	for i := range 5 {
		entries := []entry{{name: "theme/index.hbs", text: "see " + name}, image(0), image(1), image(2), image(3)}
		for j := range entries {
			entries[j].name = "theme/" + strings.TrimPrefix(entries[j].name, "theme/")
		}
		entries = append(entries[:i:i], append([]entry{manifest}, entries[i:]...)...)
		archive := zipOf(t, entries...)
		for _, size := range []int{1 << 10, 4093, 32 << 10, 1 << 20, len(archive)} {
			file, err := goBy(archive, size)
			if diff := cmp.Diff(File{Path: manifest.name, Text: []byte(manifest.text)}, file); diff != "" || err != nil {
				t.Errorf("entry %d, pieces of %d: %s, %v", i, size, diff, err)
			}
		}
	}
	// And in every place relative to the pieces.
	archive := zipOf(t, entry{name: "theme/a.hbs", text: "PK\x03\x04" + name}, manifest)
	for size := 1; size < len(archive); size++ {
		if file, err := goBy(archive, size); err != nil || string(file.Text) != manifest.text {
			t.Errorf("pieces of %d: %v", size, err)
		}
	}
}

// Of entries that are called alike, as in many copies of a theme, some are kept;
// a name may be as long as Ghost takes, and longer.
func TestScannerLimits(t *testing.T) {
	noise := make([]byte, keptEnd)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for _, test := range []struct {
		before, folder int // entries before the manifest, and the length of its folder
		want           bool
	}{{keptEntries - 1, 1, true}, {keptEntries, 1, false}, {0, maxName - len(name) - 1, true}, {0, maxName - len(name), false}} {
		var entries []entry
		for i := range test.before {
			entries = append(entries, entry{name: fmt.Sprintf("a/%d/%s", i, name), text: "x"},
				stored(fmt.Sprintf("a/%d.jpg", i), noise[:maxPacked+maxExtra+maxName+headerSize]))
		}
		folder := strings.Repeat("f", test.folder)
		entries = append(entries, entry{name: folder + "/" + name, text: "manifest_version: 1"}, entry{name: folder + "/index.hbs"},
			stored(folder+"/a.jpg", noise))
		file, err := goBy(zipOf(t, entries...), 32<<10)
		if got := string(file.Text) == "manifest_version: 1"; got != test.want || err != nil == test.want {
			t.Errorf("%d before, a folder of %d: %v, %v", test.before, test.folder, got, err)
		}
	}
}

// stored is an entry that is not compressed.
func stored(name string, content []byte) entry {
	return entry{name: name, text: string(content), with: func(*zip.FileHeader) {}}
}

// Two hundred megabytes of images take no more memory than a few.
func TestScanStaysSmall(t *testing.T) {
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	copy(noise[1000:], name) // and some that look like manifests
	var before, after runtime.MemStats
	s := NewZipScanner(name)
	w := zip.NewWriter(s)
	runtime.ReadMemStats(&before)
	for i := range 200 {
		content, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("theme/%d/%s", i, name), Method: zip.Store})
		if err == nil {
			_, err = content.Write(noise)
		}
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	runtime.ReadMemStats(&after)
	if all := after.TotalAlloc - before.TotalAlloc; all > 64<<20 {
		t.Errorf("%d bytes were made", all)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 7_000_000 {
		t.Errorf("%d bytes are kept", kept)
	}
	if _, err := s.Manifest(); !errors.Is(err, ErrNoManifest) {
		t.Errorf("error %v, want %v", err, ErrNoManifest)
	}
}

// A zip whose list of files leads elsewhere is not read, and no other part of it
// is taken for the manifest.
func TestScanOfAnEntryThatIsElsewhere(t *testing.T) {
	manifest := "theme/" + name
	other := strings.Repeat("x", len(manifest))
	archive := zipOf(t, entry{name: other, text: "manifest_version: 1"}, entry{
		name: "theme/large.jpg", text: string(make([]byte, 2*keptEnd)), with: func(*zip.FileHeader) {},
	})
	copy(archive[bytes.LastIndex(archive, []byte(other)):], manifest)
	if file, err := goBy(archive, 32<<10); !isArchiveError(err) {
		t.Errorf("goBy = %+v, %v, want an *ArchiveError", file, err)
	}
}

// Whatever a zip holds, and however it is cut, what is found as it goes by is
// what is found in the file.
func FuzzZipScanner(f *testing.F) {
	f.Add(zipOf(f, files("theme/index.hbs", "theme/"+name)...), 7)
	f.Add(zipOf(f, files(name)...), 1)
	f.Add([]byte("PK\x03\x04"+strings.Repeat("x", 22)+"\x16\x00\x00\x00"+name), 3)
	f.Fuzz(func(t *testing.T, archive []byte, size int) {
		want, wantErr := ReadZip(bytes.NewReader(archive), int64(len(archive)), name)
		got, err := goBy(archive, 1+max(0, size)%(len(archive)+1))
		if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s, %v, not %v", diff, err, wantErr)
		}
	})
}

func BenchmarkZipScanner(b *testing.B) {
	noise := make([]byte, 50<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for what, text := range map[string][]byte{"noise": noise, "names": bytes.Repeat([]byte(name+" "), 2_000_000), "headers": bytes.Repeat([]byte("PK\x03\x04"), 12_000_000)} {
		b.Run(what, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := NewZipScanner(name)
				io.CopyBuffer(struct{ io.Writer }{s}, struct{ io.Reader }{bytes.NewReader(text)}, make([]byte, 32<<10))
			}
		})
	}
}
