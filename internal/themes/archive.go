package themes

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// What is read of a zip at most. A theme that Ghost ships has some hundred
// entries; one that was zipped with its node_modules has tens of thousands.
const (
	// MaxEntries is how many files and folders a zip has at most.
	MaxEntries = 10_000

	// maxDirectory bounds the zip's list of entries, in bytes, whatever number
	// of entries the zip claims: some 400 bytes for each, where Ghost takes
	// names of 253 bytes at most.
	maxDirectory = 4 << 20

	// maxPacked bounds the manifest as it lies in the zip, in bytes. Packing
	// never makes it much longer, so what is longer is there to keep us busy.
	maxPacked = 2 * manifest.MaxSize
)

// ErrNoManifest says that the theme is readable and has no manifest in its root.
var ErrNoManifest = errors.New("no manifest in the theme's root")

// ArchiveError is why a zip is not read. It is one sentence for people.
type ArchiveError struct {
	Entry   string // that it is about, or ""
	Problem string // what is wrong, and what to do
}

func (e *ArchiveError) Error() string {
	if e.Entry == "" {
		return e.Problem
	}
	return shown(e.Entry) + " " + e.Problem
}

// Finding is what the uploader of the zip sees, where Ghost took it.
func (e *ArchiveError) Finding() manifest.Finding {
	return manifest.Finding{Field: "manifest", Message: "the theme's zip is not read: " + e.Error(), Severity: manifest.Error}
}

// shown is a name from a zip in a sentence.
func shown(name string) string {
	const enough = 200
	name = strconv.Quote(name)
	if len(name) > enough {
		name = strings.ToValidUTF8(name[:enough], "") + `…"`
	}
	return name
}

// TooLargeError says that a manifest has more than manifest.MaxSize bytes, so it
// was not read.
type TooLargeError struct {
	Path string // of the manifest, as in File
	Size int64  // in bytes; 0 if it is not known
}

func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("the file has more than %d bytes, which are read at most", manifest.MaxSize)
	}
	return fmt.Sprintf("the file has %d bytes; at most %d are read", e.Size, manifest.MaxSize)
}

// Finding is what manifest.Parse would have found in the file.
func (e *TooLargeError) Finding() manifest.Finding {
	return manifest.Finding{Field: "manifest", Message: e.Error(), Severity: manifest.Error}
}

// MisnamedError says that a theme has no manifest, but a file that is likely to be meant for it. So it is not taken for one whose
// manifest was removed.
type MisnamedError struct {
	Path string // of the file
	Want string // what a manifest is called
}

func (e *MisnamedError) Error() string {
	return fmt.Sprintf("there is no `%s`, but %s; give it that name", e.Want, shown(e.Path))
}

// Finding is what staff see of it.
func (e *MisnamedError) Finding() manifest.Finding {
	return manifest.Finding{Field: "manifest", Message: e.Error(), Severity: manifest.Error}
}

// File is a manifest that has not been parsed.
type File struct {
	Path string // where it was found; in a zip, the name of its entry
	Text []byte // at most manifest.MaxSize
}

var (
	serviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	wholeName   = regexp.MustCompile(`-manifest(\.ya?ml)?$`)
)

// FileName is what the manifest of a service is called in a theme.
func FileName(service string) (string, error) {
	if !serviceName.MatchString(service) {
		return "", fmt.Errorf("the service name %q: write 1 to 63 letters, digits, dots, dashes or underscores, a letter or a digit first", service)
	}
	if end := wholeName.FindString(service); end != "" {
		return "", fmt.Errorf("the service name %q: write the name alone, such as %s", service, strings.TrimSuffix(service, end))
	}
	return service + "-manifest.yaml", nil
}

// ReadZip reads the manifest with a file name out of a zip of size bytes. The
// manifest is in the folder that Ghost takes for the theme's root: the one with an
// index.hbs that contains all others with one. If there is no such folder, Ghost may
// take any of several, and a manifest in one of them is an *ArchiveError. __MACOSX and
// names that start with a dot do not count. In a zip without an index.hbs the
// manifest is in the zip's root or in its single folder. The other entries are not
// read.
//
// Memory is bounded by the limits above, however large the zip is. The error is
// ErrNoManifest, *MisnamedError, *TooLargeError, *ArchiveError, or that of r.
func ReadZip(r io.ReaderAt, size int64, fileName string) (File, error) {
	limited := &limitedReaderAt{r: r, left: maxDirectory + 2*maxTail}
	_, entry, err := openTheme(limited, size, fileName)
	if err != nil {
		return File{}, err
	}
	limited.left = 2 * maxPacked
	file, err := readEntry(entry)
	if limited.err != nil {
		return File{}, fmt.Errorf("reading the zip: %w", limited.err)
	}
	return file, err
}

var (
	errNotZip  = &ArchiveError{Problem: "not a zip, or cut off; zip the theme's folder again"}
	errTooMany = &ArchiveError{Problem: fmt.Sprintf("more than %d files and folders; leave out of the zip what the theme does not need, such as node_modules", MaxEntries)}
	errTooLong = &ArchiveError{Problem: "its list of files is too long; leave out of the zip what the theme does not need, such as node_modules"}
)

// openTheme reads the zip's list of entries, and finds that of the manifest.
func openTheme(limited *limitedReaderAt, size int64, fileName string) ([]*zip.File, *zip.File, error) {
	if err := checkEnd(limited.r, size); err != nil {
		return nil, nil, err
	}
	archive, err := openZip(limited, size)
	if err != nil {
		return nil, nil, err
	}
	entry, err := findManifest(archive.File, fileName)
	return archive.File, entry, err
}

// openZip reads the zip's list of entries, as far as the reader lets it: the
// list ends where it ends, not where the zip says.
func openZip(limited *limitedReaderAt, size int64) (*zip.Reader, error) {
	archive, err := zip.NewReader(limited, size)
	switch {
	case errors.Is(err, errTooLong):
		return nil, errTooLong
	case limited.err != nil:
		return nil, fmt.Errorf("reading the zip: %w", limited.err)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // findManifest looks at paths
		return nil, errNotZip
	case len(archive.File) > MaxEntries:
		return nil, errTooMany
	}
	return archive, nil
}

// The end record of a zip (APPNOTE.TXT, 4.3.16) is followed by a comment.
const (
	endSize     = 22
	locatorSize = 20 // 4.3.15, of the record that a zip of more than 4 GB has
	maxTail     = 65 << 10
)

// checkEnd checks how many entries a zip says that it has, before archive/zip
// makes room for them.
func checkEnd(r io.ReaderAt, size int64) error {
	tail := make([]byte, max(0, min(size, maxTail)))
	if n, err := r.ReadAt(tail, size-int64(len(tail))); n < len(tail) {
		if errors.Is(err, io.EOF) {
			return errNotZip
		}
		return fmt.Errorf("reading the zip: %w", err)
	}
	if len(tail) < endSize {
		return errNotZip
	}
	at := bytes.LastIndex(tail[:len(tail)-endSize+4], []byte("PK\x05\x06"))
	if at < 0 {
		return errNotZip
	}
	end := tail[at:]
	entries := binary.LittleEndian.Uint16(end[10:])
	length, offset := binary.LittleEndian.Uint32(end[12:]), binary.LittleEndian.Uint32(end[16:])
	large := entries == 0xffff || length == 0xffff || length == 0xffffffff || offset == 0xffffffff
	located := at >= locatorSize && bytes.HasPrefix(tail[at-locatorSize:], []byte("PK\x06\x07"))
	switch {
	case entries != 0xffff && entries > MaxEntries, entries == 0xffff && !located:
		return errTooMany
	case length != 0xffffffff && length > maxDirectory:
		return errTooLong
	case large && located:
		return checkLargeEnd(r, int64(binary.LittleEndian.Uint64(tail[at-locatorSize+8:])))
	}
	return nil
}

// checkLargeEnd does so with the other end record (APPNOTE.TXT, 4.3.14), which
// zips with many entries have, and those of a few writers.
func checkLargeEnd(r io.ReaderAt, offset int64) error {
	var end [56]byte
	if offset < 0 {
		return errNotZip
	}
	if _, err := r.ReadAt(end[:], offset); err != nil || !bytes.HasPrefix(end[:], []byte("PK\x06\x06")) {
		return errNotZip
	}
	switch {
	case binary.LittleEndian.Uint64(end[32:]) > MaxEntries:
		return errTooMany
	case binary.LittleEndian.Uint64(end[40:]) > maxDirectory:
		return errTooLong
	}
	return nil
}

// limitedReaderAt fails with errTooLong after so many bytes.
type limitedReaderAt struct {
	r    io.ReaderAt
	left int
	err  error // of r, other than io.EOF
}

func (l *limitedReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errTooLong
	}
	if offset < 0 {
		return 0, zip.ErrFormat // archive/zip follows whatever a zip says
	}
	n, err := l.r.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}

// findManifest finds the entry of the manifest. It refuses a zip that Ghost refuses for
// the names in it.
func findManifest(entries []*zip.File, fileName string) (*zip.File, error) {
	manifests := make(map[string][]*zip.File) // by folder, "." for the root
	misnamed := make(map[string]string)       // by folder
	var indexes []string                      // folders with an index.hbs
	tops := make(map[string]bool)             // what is in the zip's root: whether it is a folder
	for _, entry := range entries {
		if entry.Flags&1 != 0 {
			return nil, &ArchiveError{entry.Name, "is encrypted; zip the theme without a password"}
		}
		// Ghost, too, takes both slashes.
		name := strings.ReplaceAll(entry.Name, `\`, "/")
		if !staysInside(name) {
			return nil, &ArchiveError{entry.Name, "leads out of the zip; zip the theme's folder itself, so that names are relative and have no `..`"}
		}
		isFolder := strings.HasSuffix(name, "/")
		name = path.Clean(name)
		if ignored(name) {
			continue
		}
		top, _, deeper := strings.Cut(name, "/")
		tops[top] = tops[top] || deeper || isFolder
		if isFolder {
			continue
		}
		switch folder, file := path.Split(name); file {
		case "index.hbs":
			indexes = append(indexes, path.Clean(folder))
		case fileName:
			manifests[path.Clean(folder)] = append(manifests[path.Clean(folder)], entry)
		default:
			if manifest.IsMisnamed(file, fileName) {
				misnamed[path.Clean(folder)] = entry.Name
			}
		}
	}
	roots := rootsOf(indexes)
	candidates := roots
	if len(roots) == 0 { // Ghost does not take it
		candidates = []string{"."}
		if folder, only := singleFolder(tops); only {
			candidates = append(candidates, folder)
		}
	}
	var found []*zip.File
	for _, folder := range candidates {
		found = append(found, manifests[folder]...)
	}
	switch {
	case len(found) == 0:
		for _, folder := range candidates {
			if name := misnamed[folder]; name != "" {
				return nil, &MisnamedError{name, fileName}
			}
		}
		return nil, ErrNoManifest
	case len(roots) > 1:
		return nil, &ArchiveError{path.Join(roots[1], "index.hbs"), "is beside " + shown(path.Join(roots[0], "index.hbs")) +
			", so Ghost may take either folder for the theme; zip one theme's folder alone"}
	case len(found) == 1:
		return found[0], nil
	}
	return nil, &ArchiveError{found[1].Name, "is a second manifest, beside " + shown(found[0].Name) + "; leave one in the zip"}
}

// rootsOf lists the folders that Ghost may take for the theme's root, by name: of those
// with an index.hbs the ones that are in no other. Ghost takes the first that a search
// from the zip's root comes to, and searches folders side by side at the same time. So
// neither the name nor the depth decides between two of them (read-zip.js of gscan).
func rootsOf(folders []string) []string {
	prefixes := make([]string, len(folders)) // of what is in each
	for i, folder := range folders {
		if folder != "." {
			prefixes[i] = folder + "/"
		}
	}
	slices.Sort(prefixes) // so what is in a folder follows it
	var roots []string
	last := ""
	for i, prefix := range prefixes {
		if i == 0 || !strings.HasPrefix(prefix, last) {
			roots = append(roots, path.Clean(prefix))
			last = prefix
		}
	}
	return roots
}

// singleFolder finds the only folder in a zip's root, if there is no package.json beside
// it.
func singleFolder(tops map[string]bool) (string, bool) {
	var folders []string
	for top, isFolder := range tops {
		if isFolder {
			folders = append(folders, top)
		} else if top == "package.json" {
			return "", false
		}
	}
	if len(folders) != 1 {
		return "", false
	}
	return folders[0], true
}

var drive = regexp.MustCompile(`^[A-Za-z]:`)

// staysInside reports whether a name is relative and goes down only.
func staysInside(name string) bool {
	if strings.HasPrefix(name, "/") || drive.MatchString(name) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return false
		}
	}
	return true
}

// ignored reports whether an entry is none of the theme's: what macOS adds, and
// dot files.
func ignored(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return true
		}
	}
	return name == "__MACOSX" || strings.HasPrefix(name, "__MACOSX/")
}

// readEntry reads the manifest, whatever the zip says of its size.
func readEntry(entry *zip.File) (File, error) {
	mode := entry.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return File{}, &ArchiveError{entry.Name, "is a symbolic link; put the file itself into the zip"}
	case !mode.IsRegular():
		return File{}, &ArchiveError{entry.Name, "is not a file; put a file of that name into the zip"}
	case entry.UncompressedSize64 > manifest.MaxSize:
		return File{}, &TooLargeError{entry.Name, int64(min(entry.UncompressedSize64, 1<<62))}
	case entry.CompressedSize64 > maxPacked:
		return File{}, damaged(entry)
	}
	content, err := entry.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return File{}, &ArchiveError{entry.Name, "is compressed in a way that Ghost does not read either; zip it with Deflate, which is what zip tools do by default"}
	}
	if err != nil {
		return File{}, damaged(entry)
	}
	defer content.Close()
	// One byte more shows a size that was a lie, without inflating the rest.
	text, err := io.ReadAll(io.LimitReader(content, int64(entry.UncompressedSize64)+1))
	if err != nil || uint64(len(text)) != entry.UncompressedSize64 {
		return File{}, damaged(entry)
	}
	return File{Path: entry.Name, Text: text}, nil
}

func damaged(entry *zip.File) error {
	return &ArchiveError{entry.Name, "is damaged in the zip, or its size there is wrong; zip the theme's folder again"}
}
