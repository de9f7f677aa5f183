package themes

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

const name = "lychgate-manifest.yaml"

// entry is what a test puts into a zip.
type entry struct {
	name string
	text string
	mode fs.FileMode
	with func(*zip.FileHeader) // changes it
}

func (e entry) header() *zip.FileHeader {
	h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
	if e.text == "" {
		h.Method = zip.Store // much faster, for tests with many entries
	}
	h.SetMode(0o644)
	if e.mode != 0 {
		h.SetMode(e.mode)
	}
	return h
}

// zipOf makes a zip. An entry with a change is written as the change has it,
// true or not.
func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		h := e.header()
		var content io.Writer
		var err error
		if e.with == nil {
			content, err = w.CreateHeader(h)
		} else {
			h.Method = zip.Store
			h.CompressedSize64, h.UncompressedSize64 = uint64(len(e.text)), uint64(len(e.text))
			e.with(h)
			content, err = w.CreateRaw(h)
		}
		if err == nil {
			_, err = io.WriteString(content, e.text)
		}
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	return out.Bytes()
}

func files(names ...string) []entry {
	entries := make([]entry, len(names))
	for i, n := range names {
		entries[i] = entry{name: n, text: "text of " + n}
	}
	return entries
}

// read reads a zip that is there, and the same zip as it goes by.
func read(t testing.TB, archive []byte) (File, error) {
	t.Helper()
	file, err := ReadZip(bytes.NewReader(archive), int64(len(archive)), name)
	scanned, scanErr := goBy(archive, 1+len(archive)/3)
	if diff := cmp.Diff(file, scanned); diff != "" || fmt.Sprint(err) != fmt.Sprint(scanErr) {
		t.Errorf("going by: %s, %v, not %v", diff, scanErr, err)
	}
	return file, err
}

// The manifest is found where Ghost finds the theme.
func TestWhereTheManifestIs(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []string
		want    string // "" is nowhere
	}{
		{"alone", []string{name}, name},
		{"in the root", []string{"index.hbs", "package.json", name, "assets/a.css", "partials/b.hbs"}, name},
		{"in the root, with one folder", []string{"index.hbs", name, "assets/a.css"}, name},
		{"in the single folder", []string{"source/", "source/index.hbs", "source/" + name, "source/assets/a.css"}, "source/" + name},
		{"in the single folder, which has no entry", []string{"source/" + name}, "source/" + name},
		{"beside what macOS adds", []string{"__MACOSX/source/._" + name, "source/" + name, ".DS_Store", "__MACOSX/" + name}, "source/" + name},
		{"beside dot files", []string{".git/config", ".github/" + name, "source/" + name, ".gitignore"}, "source/" + name},
		{"beside a file", []string{"read me.txt", "source/" + name}, "source/" + name},
		{"with backslashes", []string{`source\index.hbs`, `source\` + name}, `source\` + name},
		{"with a dot in front", []string{"./source/" + name}, "./source/" + name},

		{"with a folder beside the theme", []string{"source/index.hbs", "source/" + name, "other/read me.txt", "gulpfile.js"}, "source/" + name},
		{"in a folder further down", []string{"wrap/source/" + name, "wrap/source/index.hbs", "wrap/source/partials/index.hbs"}, "wrap/source/" + name},
		{"in a folder whose name another continues", []string{"a/index.hbs", "a/" + name, "a/b/index.hbs", "a/b-c/index.hbs", "a.js"}, "a/" + name},
		{"in a folder called as macOS does", []string{"source/__MACOSX/index.hbs", "source/__MACOSX/" + name}, "source/__MACOSX/" + name},
		{"in none of two themes", []string{"b/index.hbs", "a/index.hbs"}, ""},
		{"below two themes, and above", []string{name, "b/index.hbs", "b/docs/" + name, "a/index.hbs"}, ""},
		{"below the root of a theme", []string{"index.hbs", "assets/theme/index.hbs", "assets/theme/" + name}, ""},
		{"above the theme", []string{name, "package.json", "source/index.hbs"}, ""},

		{"empty", nil, ""},
		{"none", []string{"index.hbs", "package.json"}, ""},
		{"in one of two folders", []string{"a/" + name, "b/index.hbs"}, ""},
		{"in a folder of the theme", []string{"index.hbs", "docs/" + name}, ""},
		{"in a folder of the folder", []string{"source/index.hbs", "source/docs/" + name}, ""},
		{"of another service", []string{"outpost-manifest.yaml"}, ""},
		{"hidden", []string{"." + name}, ""},
		{"what macOS adds, alone", []string{"__MACOSX/" + name}, ""},
		{"a folder", []string{name + "/"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := files(c.entries...)
			for i := range entries {
				if strings.HasSuffix(entries[i].name, "/") {
					entries[i].text = ""
				}
			}
			got, err := read(t, zipOf(t, entries...))
			if c.want == "" {
				if !errors.Is(err, ErrNoManifest) {
					t.Errorf("got %v, %v, want error %v", got, err, ErrNoManifest)
				}
				return
			}
			if diff := cmp.Diff(File{Path: c.want, Text: []byte("text of " + c.want)}, got); diff != "" || err != nil {
				t.Errorf("mismatch: error %v, want none (-want +got):\n%v", err, diff)
			}
		})
	}
}

// A zip that is not what it should be is refused in a sentence that says what to
// do.
func TestBadZips(t *testing.T) {
	link := entry{name: name, text: "/etc/passwd", mode: fs.ModeSymlink | 0o777}
	good := zipOf(t, files("index.hbs", name)...)
	for _, c := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"empty file", nil, "not a zip, or cut off; zip the theme's folder again"},
		{"text", []byte(strings.Repeat("manifest_version: 1\n", 10)), "not a zip, or cut off; zip the theme's folder again"},
		{"cut off", good[:len(good)-1], "not a zip, or cut off; zip the theme's folder again"},
		{"cut off in the middle", good[:len(good)/2], "not a zip, or cut off; zip the theme's folder again"},
		{"without its start", good[len(good)/2:], `"lychgate-manifest.yaml" is damaged in the zip, or its size there is wrong; zip the theme's folder again`},
		{"up", zipOf(t, files(name, "../evil")...), `"../evil" leads out of the zip; zip the theme's folder itself, so that names are relative and have no ` + "`..`"},
		{"up and down", zipOf(t, files(name, "a/../../evil")...), `"a/../../evil" leads out of the zip; zip the theme's folder itself, so that names are relative and have no ` + "`..`"},
		{"up, in Windows", zipOf(t, files(name, `a\..\evil`)...), `"a\\..\\evil" leads out of the zip; zip the theme's folder itself, so that names are relative and have no ` + "`..`"},
		{"absolute", zipOf(t, files("/"+name)...), `"/lychgate-manifest.yaml" leads out of the zip; zip the theme's folder itself, so that names are relative and have no ` + "`..`"},
		{"absolute, in Windows", zipOf(t, files(`C:\`+name)...), `"C:\\lychgate-manifest.yaml" leads out of the zip; zip the theme's folder itself, so that names are relative and have no ` + "`..`"},
		{"encrypted", zipOf(t, entry{name: name, text: "x", with: func(h *zip.FileHeader) { h.Flags |= 1 }}), `"lychgate-manifest.yaml" is encrypted; zip the theme without a password`},
		{"another entry encrypted", zipOf(t, entry{name: name}, entry{name: "index.hbs", with: func(h *zip.FileHeader) { h.Flags |= 1 }}), `"index.hbs" is encrypted; zip the theme without a password`},
		{"twice", zipOf(t, files(name, name)...), `"lychgate-manifest.yaml" is a second manifest, beside "lychgate-manifest.yaml"; leave one in the zip`},
		{"twice in the folder", zipOf(t, files("source/"+name, "source/./"+name)...), `"source/./lychgate-manifest.yaml" is a second manifest, beside "source/lychgate-manifest.yaml"; leave one in the zip`},
		{"in the root and in the folder", zipOf(t, files("source/"+name, name)...), `"source/lychgate-manifest.yaml" is a second manifest, beside "lychgate-manifest.yaml"; leave one in the zip`},
		{"in two themes", zipOf(t, files("b/index.hbs", "b/"+name, "a/index.hbs", "a/"+name)...), `"b/index.hbs" is beside "a/index.hbs", so Ghost may take either folder for the theme; zip one theme's folder alone`},
		{"in the first of two themes", zipOf(t, files("a/index.hbs", "a/"+name, "a/x/index.hbs", "b/index.hbs")...), `"b/index.hbs" is beside "a/index.hbs", so Ghost may take either folder for the theme; zip one theme's folder alone`},
		{"in the second of two themes", zipOf(t, files("a/index.hbs", "b/index.hbs", "b/"+name)...), `"b/index.hbs" is beside "a/index.hbs", so Ghost may take either folder for the theme; zip one theme's folder alone`},
		{"in a theme above another", zipOf(t, files("z/index.hbs", "z/"+name, "b/x/index.hbs")...), `"z/index.hbs" is beside "b/x/index.hbs", so Ghost may take either folder for the theme; zip one theme's folder alone`},
		{"in a theme whose name another continues", zipOf(t, files("a/index.hbs", "a/"+name, "a-b/index.hbs")...), `"a/index.hbs" is beside "a-b/index.hbs", so Ghost may take either folder for the theme; zip one theme's folder alone`},
		{"symbolic link", zipOf(t, link), `"lychgate-manifest.yaml" is a symbolic link; put the file itself into the zip`},
		{"device", zipOf(t, entry{name: name, mode: fs.ModeDevice | 0o644}), `"lychgate-manifest.yaml" is not a file; put a file of that name into the zip`},
		{"unknown compression", zipOf(t, entry{name: name, text: "x", with: func(h *zip.FileHeader) { h.Method = 99 }}), `"lychgate-manifest.yaml" is compressed in a way that Ghost does not read either; zip it with Deflate, which is what zip tools do by default`},
		{"wrong checksum", zipOf(t, entry{name: name, text: "x", with: func(h *zip.FileHeader) { h.CRC32 = 1 }}), `"lychgate-manifest.yaml" is damaged in the zip, or its size there is wrong; zip the theme's folder again`},
		{"a name that turns the screen", zipOf(t, files("\x1b[2J/../"+name)...), `"\x1b[2J/../lychgate-manifest.yaml" leads out of the zip; zip the theme's folder itself, so that names are relative and have no ` + "`..`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(t, c.archive)
			if err == nil {
				t.Fatalf("got %q, want an error", got)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !isArchiveError(err) {
				t.Errorf("mismatch: error %v, want none (-want +got):\n%s", err, diff)
			}
		})
	}
}

func isArchiveError(err error) bool {
	var archive *ArchiveError
	return errors.As(err, &archive)
}

// Each limit holds on both sides.
func TestZipLimits(t *testing.T) {
	lineartest.Volume(t)
	many := func(n int, nameLength int) []byte {
		entries := []entry{{name: name, text: "found"}}
		for i := 1; i < n; i++ {
			entries = append(entries, entry{name: fmt.Sprintf("%0*d.png", nameLength-4, i)})
		}
		return zipOf(t, entries...)
	}
	long := func(n int) string { return strings.Repeat("#", n) }
	claims := func(text string, packed, size uint64) []byte {
		return zipOf(t, entry{name: name, text: text, with: func(h *zip.FileHeader) {
			h.Method, h.CompressedSize64, h.UncompressedSize64 = zip.Deflate, packed, size
		}})
	}
	deflated := func(text string) string {
		archive := zipOf(t, entry{name: name, text: text})
		r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		raw, err := r.File[0].OpenRaw()
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		packed, err := io.ReadAll(raw)
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		return string(packed)
	}
	bomb := deflated(long(8 << 20))
	empty := strings.Repeat("\x00\x00\x00\xff\xff", maxPacked/5) // blocks of nothing
	damaged := `"lychgate-manifest.yaml" is damaged in the zip, or its size there is wrong; zip the theme's folder again`
	for _, c := range []struct {
		name    string
		archive []byte
		want    string // an error, or "" for none
	}{
		{"as many entries as there may be", many(MaxEntries, 10), ""},
		{"as many, with names as long as Ghost takes", many(MaxEntries, 253), ""},
		{"one more", many(MaxEntries+1, 10), errTooMany.Error()},
		{"more than 16 bits count", many(1<<16, 10), errTooMany.Error()},
		{"more than the end record says", withCount(many(MaxEntries+1, 10), 1), "not a zip, or cut off; zip the theme's folder again"},
		{"65,536 more than the end record says", withCount(many(1<<16+5, 10), 5), errTooMany.Error()},
		{"as many, with longer names", withCount(many(1<<16+5, 30), 5), errTooLong.Error()},
		{"an end record with all ones, for no reason", withCount(many(3, 10), 0xffff), errTooMany.Error()},
		{"names too long in all", many(MaxEntries, 600), errTooLong.Error()},

		{"as long as a manifest may be", zipOf(t, entry{name: name, text: long(manifest.MaxSize)}), ""},
		{"one byte more", zipOf(t, entry{name: name, text: long(manifest.MaxSize + 1)}), "the file has 262145 bytes; at most 262144 are read"},
		{"bomb", zipOf(t, entry{name: name, text: long(8 << 20)}), "the file has 8388608 bytes; at most 262144 are read"},
		{"bomb that says it is small", claims(bomb, uint64(len(bomb)), 100), damaged},
		{"longer than it says", claims(deflated("12345"), uint64(len(deflated("12345"))), 4), damaged},
		{"shorter than it says", claims(deflated("12345"), uint64(len(deflated("12345"))), 6), damaged},
		{"packed beyond what packing makes", claims(empty+"\x00", maxPacked+1, 5), damaged},
		{"said to be packed longer than the zip is", claims("x", 1<<40, 5), damaged},
		{"said to be larger than there is room for", claims("x", 1, 1<<63), "the file has 4611686018427387904 bytes; at most 262144 are read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(t, c.archive)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withCount changes how many entries the end record of a zip claims.
func withCount(archive []byte, n uint16) []byte {
	end := archive[len(archive)-endSize:]
	if n != 0xffff && binary.LittleEndian.Uint16(end[8:]) == 0xffff {
		// A large zip has its numbers in another record, which goes.
		large := archive[len(archive)-endSize-locatorSize-56:]
		copy(large[56:], "gone")
		binary.LittleEndian.PutUint32(end[12:], uint32(binary.LittleEndian.Uint64(large[40:])))
		binary.LittleEndian.PutUint32(end[16:], uint32(binary.LittleEndian.Uint64(large[48:])))
	}
	binary.LittleEndian.PutUint16(end[8:], n)
	binary.LittleEndian.PutUint16(end[10:], n)
	return archive
}

// What is beside the manifest costs nothing: it is not read, however large.
func TestOnlyTheManifestIsRead(t *testing.T) {
	var random bytes.Buffer
	for i := range 1 << 18 {
		fmt.Fprintf(&random, "%08x", i*2654435761)
	}
	archive := zipOf(t, entry{name: "source/image.png", text: random.String()}, entry{name: "source/" + name, text: "found"}, entry{name: "source/z.png", text: random.String()})
	counter := &countingReaderAt{r: bytes.NewReader(archive)}
	got, err := ReadZip(counter, int64(len(archive)), name)
	if err != nil || string(got.Text) != "found" {
		t.Fatalf(`ReadZip = %q, %v, want no error, text "found"`, got.Text, err)
	}
	if counter.n > 4*maxTail || len(archive) < 10*maxTail {
		t.Errorf("%d of %d bytes were read", counter.n, len(archive))
	}
}

type countingReaderAt struct {
	r io.ReaderAt
	n int
}

func (c *countingReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.r.ReadAt(p, offset)
	c.n += n
	return n, err
}

// A disk that fails is no mistake of the zip, wherever it fails.
func TestDiskFails(t *testing.T) {
	archive := zipOf(t, files("index.hbs", name)...)
	broken := errors.New("input/output error")
	var calls int
	for fail := 1; ; fail++ {
		calls = 0
		got, err := ReadZip(readerAtFunc(func(p []byte, offset int64) (int, error) {
			if calls++; calls == fail {
				return 0, broken
			}
			return bytes.NewReader(archive).ReadAt(p, offset)
		}), int64(len(archive)), name)
		if calls < fail {
			if err != nil || len(got.Text) == 0 {
				t.Errorf("got %q, %v, want no error, some text", got, err)
			}
			break
		}
		if !errors.Is(err, broken) || isArchiveError(err) {
			t.Errorf("read %d: %v", fail, err)
		}
	}
	if calls < 3 {
		t.Errorf("%d reads", calls)
	}
}

type readerAtFunc func(p []byte, offset int64) (int, error)

func (f readerAtFunc) ReadAt(p []byte, offset int64) (int, error) { return f(p, offset) }

func TestFileName(t *testing.T) {
	for service, want := range map[string]string{
		"lychgate": "lychgate-manifest.yaml", "my.out-post_2": "my.out-post_2-manifest.yaml", strings.Repeat("a", 63): strings.Repeat("a", 63) + "-manifest.yaml",
		"": "", "../x": "", "a/b": "", `a\b`: "", ".a": "", "a b": "", strings.Repeat("a", 64): "", "outpost-manifest": "", "outpost-manifest.yaml": "",
	} {
		if got, err := FileName(service); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: FileName = %q, %v, want %v, an error only if that is empty", service, got, err, want)
		}
	}
}

func TestOpenTakesFoldersZipsAndFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		return path
	}
	inFolder := write("theme/"+name, "text")
	zipped := write("theme.zip", string(zipOf(t, files("theme/"+name)...)))
	unnamed := write("download", string(zipOf(t, files(name)...)))
	write("none/index.hbs", "")
	write("folder/"+name+"/file", "")
	longest := write("longest", strings.Repeat("#", manifest.MaxSize))
	tooLong := write("too long/"+name, strings.Repeat("#", manifest.MaxSize+7))
	tooLongZip := write("too long.zip", string(zipOf(t, entry{name: name, text: strings.Repeat("#", manifest.MaxSize+1)})))
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatalf("error %v, want none", err)
	}

	for path, want := range map[string]File{
		"theme":         {inFolder, []byte("text")},
		"theme/" + name: {inFolder, []byte("text")},
		"theme.zip":     {filepath.Join(zipped, "theme", name), []byte("text of theme/" + name)},
		"download":      {filepath.Join(unnamed, name), []byte("text of " + name)},
		"longest":       {longest, bytes.Repeat([]byte("#"), manifest.MaxSize)},
	} {
		got, err := Open(filepath.Join(dir, path), name)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: Open: error %v, want none (-want +got):\n%.500s", path, err, diff)
		}
	}
	for path, want := range map[string]TooLargeError{
		"too long":         {tooLong, manifest.MaxSize + 7},
		"too long/" + name: {tooLong, manifest.MaxSize + 7},
		"too long.zip":     {filepath.Join(tooLongZip, name), manifest.MaxSize + 1},
	} {
		_, err := Open(filepath.Join(dir, path), name)
		var got *TooLargeError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%s: Open = %v, want %v", path, err, want)
			continue
		}
		parsed := manifest.Parse(make([]byte, got.Size)).Findings
		if diff := cmp.Diff(parsed, []manifest.Finding{got.Finding()}); diff != "" {
			t.Errorf("(-parsed +finding):\n%s", diff)
		}
	}
	for path, want := range map[string]error{"none": ErrNoManifest, "nowhere": fs.ErrNotExist, "dangling": fs.ErrNotExist} {
		if _, err := Open(filepath.Join(dir, path), name); !errors.Is(err, want) {
			t.Errorf("%s: Open = %v, want error %v", path, err, want)
		}
	}
	if _, err := Open(filepath.Join(dir, "folder"), name); err == nil || !strings.Contains(err.Error(), "is not a file; put a file there") {
		t.Errorf("a folder: error %v, want one that says to put a file there", err)
	}
	if _, err := Open(write("text.zip", "manifest_version: 1"), name); !isArchiveError(err) {
		t.Errorf("text that is named a zip: error %v, want an ArchiveError", err)
	}
}

func TestStatusCountsWarnings(t *testing.T) {
	for n, want := range map[int]string{0: "Valid", 1: "1 warning", 2: "2 warnings"} {
		if got := Status(n); got != want {
			t.Errorf("%d: Status = %s, want %v", n, got, want)
		}
	}
}

// Whatever is uploaded, there is a response, and it is of a known kind.
func FuzzReadZip(f *testing.F) {
	f.Add([]byte("manifest_version: 1"))
	f.Add(zipOf(f))
	f.Add(zipOf(f, files("index.hbs", name)...))
	f.Add(zipOf(f, files("source/"+name, "__MACOSX/x")...))
	f.Add(zipOf(f, entry{name: name, text: "x", mode: fs.ModeSymlink}))
	f.Add(zipOf(f, entry{name: name, text: "x", with: func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 40 }}))
	f.Add(withCount(zipOf(f, files(name)...), 0xffff))
	f.Fuzz(func(t *testing.T, archive []byte) {
		got, err := read(t, archive)
		var tooLarge *TooLargeError
		switch {
		case err == nil && len(got.Text) > manifest.MaxSize, err == nil && got.Path == "":
			t.Errorf("%q, %d bytes", got.Path, len(got.Text))
		case err != nil && !errors.Is(err, ErrNoManifest) && !isArchiveError(err) && !errors.As(err, &tooLarge):
			t.Errorf("got %T: %v, want no error or error %v or an *ArchiveError or a *TooLargeError", err, err, ErrNoManifest)
		}
	})
}
