package themes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// ZipScanner finds the manifest in a zip that goes by, from its first byte to its
// last, as an upload does. It keeps the end of the zip, where the list of its
// entries is, and the first entries that are called like a manifest: 7 MB at most,
// however large the zip is, and no more than the zip has.
//
// The zero value is not usable; [NewZipScanner] makes one.
type ZipScanner struct {
	fileName []byte
	size     int64 // of what went by
	end      ring
	entries  []part
	last     []byte // what went by last: enough for the header of an entry before its name; with room for as much again
}

// part is a piece of a zip.
type part struct {
	offset int64
	length int64 // that it is to have
	bytes  []byte
}

const (
	// keptEnd is what is kept of a zip's end, in bytes: all that ReadZip reads
	// there.
	keptEnd = maxDirectory + 2*maxTail

	// keptEntries is how many entries with the manifest's name are kept, in
	// whatever folder they are.
	keptEntries = 4

	// The header of an entry (APPNOTE.TXT, 4.3.7) is followed by its name and
	// an extra field.
	headerSize  = 30
	maxName     = 512 // Ghost takes 253
	maxExtra    = 0xffff
	describedBy = 24 // bytes behind the content, of an entry whose header has no sizes
)

// NewZipScanner scans for manifests with a file name.
func NewZipScanner(fileName string) *ZipScanner {
	return &ZipScanner{fileName: []byte(fileName), end: ring{limit: keptEnd}, last: make([]byte, 0, 2*(headerSize+maxName))}
}

// Write is shown the next piece of the zip. It never fails.
func (s *ZipScanner) Write(p []byte) (int, error) {
	for i := range s.entries {
		e := &s.entries[i]
		e.bytes = append(e.bytes, p[:min(int64(len(p)), e.length-int64(len(e.bytes)))]...)
	}
	s.find(p)
	s.end.write(p)
	s.size += int64(len(p))
	return len(p), nil
}

// find looks for headers of entries whose names end in p.
func (s *ZipScanner) find(p []byte) {
	const enough = headerSize + maxName
	border := append(s.last, p[:min(len(p), enough)]...)
	if len(s.last) > 0 {
		s.findIn(border, s.size-int64(len(s.last)), len(s.last), p[len(border)-len(s.last):])
	}
	s.findIn(p, s.size, 0, nil)
	if len(p) > enough {
		border = p
	}
	s.last = append(s.last[:0], border[max(0, len(border)-enough):]...)
}

// findIn keeps the entries that are called like a manifest and whose headers are
// in text, which begins at an offset of the zip. If the first bytes of it went by
// before, the header begins in them, and ends behind them. The rest is what
// follows text.
func (s *ZipScanner) findIn(text []byte, offset int64, before int, rest []byte) {
	for start := 0; len(s.entries) < keptEntries; start++ {
		next := bytes.Index(text[start:], []byte("PK\x03\x04"))
		if next < 0 {
			return
		}
		start += next
		header := text[start:]
		if before > 0 && start >= before || len(header) < headerSize {
			return
		}
		name := int(binary.LittleEndian.Uint16(header[26:]))
		if name > maxName || headerSize+name > len(header) || start+headerSize+name <= before ||
			!bytes.HasSuffix(header[headerSize:headerSize+name], s.fileName) {
			continue
		}
		e := part{offset: offset + int64(start), length: headerSize + maxName + maxExtra + maxPacked + describedBy}
		for _, piece := range [][]byte{header, rest} {
			e.bytes = append(e.bytes, piece[:min(int64(len(piece)), e.length-int64(len(e.bytes)))]...)
		}
		s.entries = append(s.entries, e)
	}
}

// Manifest is for after the end of the zip. Errors: those of [ReadZip].
func (s *ZipScanner) Manifest() (File, error) {
	file, err := ReadZip(s, s.size, string(s.fileName))
	if errors.Is(err, errNotKept) {
		return File{}, &ArchiveError{Problem: "the manifest was not found where its list of files has it, or too many files are called like it; zip the theme's folder alone"}
	}
	return file, err
}

var errNotKept = errors.New("that part of the zip is not kept")

// ReadAt reads the parts of the zip that are kept.
func (s *ZipScanner) ReadAt(p []byte, offset int64) (int, error) {
	if start := s.size - int64(len(s.end.bytes)); offset >= start {
		n := s.end.copy(p, int(min(offset-start, int64(len(s.end.bytes)))))
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
	for _, e := range s.entries {
		if offset >= e.offset && offset+int64(len(p)) <= e.offset+int64(len(e.bytes)) {
			return copy(p, e.bytes[offset-e.offset:]), nil
		}
	}
	return 0, errNotKept
}

// ring keeps the last bytes of what was written to it, up to a limit.
type ring struct {
	limit int
	bytes []byte
	start int // of the oldest byte
}

func (r *ring) write(p []byte) {
	p = p[max(0, len(p)-r.limit):]
	free := min(r.limit-len(r.bytes), len(p))
	if need := len(r.bytes) + free; need > cap(r.bytes) {
		size := r.limit // and halves of it, so that growing copies little
		for size/2 >= need {
			size /= 2
		}
		r.bytes = append(make([]byte, 0, size), r.bytes...)
	}
	r.bytes = append(r.bytes, p[:free]...)
	for p = p[free:]; len(p) > 0; {
		n := copy(r.bytes[r.start:], p)
		r.start = (r.start + n) % r.limit
		p = p[n:]
	}
}

// copy copies what is kept, from its n-th byte on.
func (r *ring) copy(p []byte, n int) int {
	older, newer, copied := r.bytes[r.start:], r.bytes[:r.start], 0
	if n < len(older) {
		copied = copy(p, older[n:])
		n = len(older)
	}
	return copied + copy(p[copied:], newer[n-len(older):])
}
