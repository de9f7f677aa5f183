package themes

import (
	"bufio"
	"context"
	"io"
	"math"
	"mime/multipart"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// This file has an upload scanned for its manifest while it is passed on.

// scanWait is how long an upload waits to be scanned.
const scanWait = 5 * time.Second

// acquireScan reports whether an upload to a site may be scanned. If so, Release follows.
func acquireScan(ctx context.Context, scans *limiter.Limiter, site string) bool {
	ctx, cancel := context.WithTimeout(ctx, scanWait)
	defer cancel()
	return scans.Acquire(ctx, site) == nil
}

// upload is the body of a request with a theme, which is scanned as it is passed
// on.
type upload struct {
	io.ReadCloser
	scans   *limiter.Limiter
	site    string
	title   string               // of the platform
	unread  error                // why it is not scanned, or nil
	scanned atomic.Pointer[scan] // nil if it is not, or no longer
}

// scan is the scan of an upload.
type scan struct {
	seen    *io.PipeWriter
	done    chan struct{} // closed when all was seen
	scanner *themes.ZipScanner
	late    *time.Timer
	whole   bool // the zip was seen to its end
}

const (
	// maxScan bounds how long an upload is scanned: its sender may be slow, and a
	// sender who stops is not to keep others from being scanned.
	maxScan = 10 * time.Minute

	// maxBeforeTheme bounds what is read of a body before the theme, in bytes: the
	// headers of parts, which Go would take 10 MB of, and small fields.
	maxBeforeTheme = 256 << 10
)

// begin has the theme scanned in the field of a multipart/form-data body (RFC 7578)
// with a boundary. The caller has acquired a scan.
func (u *upload) begin(boundary, field, fileName string) {
	r, w := io.Pipe()
	s := &scan{seen: w, done: make(chan struct{}), scanner: themes.NewZipScanner(fileName)}
	s.late = time.AfterFunc(maxScan, u.drop)
	u.scanned.Store(s)
	go func() {
		defer close(s.done)
		s.read(r, boundary, field)
		_ = r.Close() // what follows the theme is of no interest
	}()
}

// read reads the parts up to the theme. Platforms take a body with one.
func (s *scan) read(body io.Reader, boundary, field string) {
	limited := &io.LimitedReader{R: body, N: maxBeforeTheme}
	for parts := multipart.NewReader(bufio.NewReaderSize(limited, 64<<10), boundary); ; {
		part, err := parts.NextRawPart()
		if err != nil {
			return
		}
		if part.FormName() == field && part.FileName() != "" {
			limited.N = math.MaxInt64
			pieces := bufio.NewWriterSize(s.scanner, 64<<10) // a part comes in pieces of 4 KB
			_, err = pieces.ReadFrom(part)
			s.whole = err == nil && pieces.Flush() == nil
			return
		}
	}
}

// end ends the reading.
func (s *scan) end() {
	_ = s.seen.CloseWithError(io.ErrUnexpectedEOF) // never fails
	<-s.done
}

// Read reads for the next handler.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	s := u.scanned.Load()
	if s == nil {
		return n, err
	}
	if n > 0 {
		_, _ = s.seen.Write(p[:n]) // fails once the theme has been read
	}
	if err != nil {
		_ = s.seen.CloseWithError(err) // never fails
	}
	return n, err
}

// drop ends the scan and forgets what was seen. The next handler may hold the
// body longer: while the sender is silent, its transport waits in Read.
func (u *upload) drop() {
	if s := u.scanned.Swap(nil); s != nil {
		s.late.Stop()
		s.end()
		u.scans.Release(u.site)
	}
}

// errBusy is why an upload was not read.
var errBusy = &themes.ArchiveError{Problem: "too many themes were uploaded at the same time; upload it again"}

// errNoBoundary is why an upload was not read whose Content-Type does not say where its parts end, or says so twice.
var errNoBoundary = &themes.ArchiveError{Problem: "the request's Content-Type is not multipart/form-data with one boundary; upload it again with one"}

// errUnknown is why an upload to a platform was not read, for a platform that could not
// be asked.
func errUnknown(title string) error {
	return &themes.ArchiveError{Problem: title + " could not be asked who uploads it; upload it again"}
}

// errCutOff is why an upload to a platform was not read to its end.
func errCutOff(title string) error {
	return &themes.ArchiveError{Problem: "it could not be read on its way to " + title + "; upload it again"}
}

// source is called once the body was passed on.
func (u *upload) source() themes.Source {
	s, why := u.scanned.Load(), u.unread
	if s != nil {
		if s.end(); s.whole {
			return themes.FromZip(s.scanner)
		}
	}
	if why == nil {
		why = errCutOff(u.title)
	}
	return func(context.Context) ([]byte, error) { return nil, why }
}
