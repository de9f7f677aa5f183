package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/themes"
)

// Next passes a request on to the platform.
type Next func(http.ResponseWriter, *http.Request) error

// adminThemes matches where, behind the path of its admin, Ghost takes themes and
// removes them: in any case, with slashes doubled, with or without one at the
// end, and under the names of older versions of its API.
var adminThemes = regexp.MustCompile(`(?i)^/+api/+(?:(?:v[234]|canary)/+)?admin/+themes/+([^/]+)/*$`)

// maxAdminPath bounds the paths that are matched, in bytes. Node.js, which Ghost
// runs on, takes 16 KiB of headers with the path among them.
const maxAdminPath = 16 << 10

// Changes reports whether a request changes a theme in Ghost, so that it is to be
// watched.
func (h *ThemesAPI) Changes(r *http.Request) bool {
	if r.Method != http.MethodPost && r.Method != http.MethodDelete {
		return false
	}
	p := r.URL.Path
	if len(p) < len(h.Path) || len(p) > maxAdminPath || !strings.EqualFold(p[:len(h.Path)], h.Path) {
		return false
	}
	match := adminThemes.FindStringSubmatch(p[len(h.Path):])
	return match != nil && (r.Method == http.MethodDelete || strings.EqualFold(match[1], "upload"))
}

const (
	// afterwards is how long Ghost has to answer once whoever uploaded a theme
	// has left: it may have taken the theme all the same.
	afterwards = 15 * time.Second

	// storing bounds the time to store what was found.
	storing = 10 * time.Second
)

// Watch passes a request on that [ThemesAPI.Changes] a theme. If Ghost took a
// theme, its manifest is taken over, and the findings are added to Ghost's answer
// (docs/theme_manifest.md#uploads); if Ghost removed one, what is kept of it is cleared. If Ghost
// refused, nothing changes.
//
// An upload is scanned as it is passed on, and never kept whole. Ghost is asked
// first whether the session or the token of the request, which is from an address,
// is valid; if not, nothing is scanned. The error is that of next.
func (h *ThemesAPI) Watch(w http.ResponseWriter, r *http.Request, site *ThemesSite, address netip.Addr, next Next) (ThemesServed, error) {
	ctx, cancel := outlive(r.Context())
	defer cancel()
	passed := r.Clone(ctx)
	passed.Header.Set("Accept-Encoding", "identity") // so that the answer can be read
	held := &heldAnswer{ResponseWriter: w}
	served := ThemesServed{Operation: "remove", Outcome: "other"}
	if r.Method == http.MethodDelete {
		err := next(held, passed)
		if err == nil && held.holds() {
			served.Outcome = h.removed(ctx, site, r.URL.Path)
		}
		held.release()
		return served, err
	}
	served.Operation = "upload"
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || parameters["boundary"] == "" || r.Body == nil {
		return served, next(w, r) // Ghost refuses it
	}
	upload := &upload{ReadCloser: passed.Body, scans: h.Scans, site: site.Name}
	switch {
	case !site.Staff.mayUpload(ctx, r, address):
		upload.unread = errUnknown
	case !h.Scans.acquire(ctx, site.Name):
		upload.unread = errBusy
	default:
		upload.begin(parameters["boundary"], h.FileName)
	}
	defer upload.drop()
	held.passing = upload.drop
	passed.Body = upload
	err = next(held, passed)
	switch {
	case err == nil && held.holds():
		served.Outcome = h.uploaded(ctx, site, held, upload)
	case err == nil && held.status >= http.StatusOK && held.status < http.StatusMultipleChoices:
		h.Logger.Error("Ghost's answer to an upload cannot be read, so its manifest was not looked at", zap.String("site", site.Name))
		served.Outcome = "failed"
	}
	held.release()
	return served, err
}

// outlive returns a context that goes on for a while when another ends.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(afterwards):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// removed clears what is kept of a theme.
func (h *ThemesAPI) removed(ctx context.Context, site *ThemesSite, path string) string {
	name := adminThemes.FindStringSubmatch(path[len(h.Path):])[1]
	report, err := h.take(ctx, site, name, func(context.Context) ([]byte, error) { return nil, themes.ErrNoManifest })
	if err != nil {
		return "failed"
	}
	return outcomeOfReport(report)
}

// uploaded takes over the manifest of a theme that Ghost took, and adds what was
// found to its answer.
func (h *ThemesAPI) uploaded(ctx context.Context, site *ThemesSite, held *heldAnswer, upload *upload) string {
	var answer struct {
		Themes []struct {
			Name string `json:"name"`
		} `json:"themes"`
	}
	if json.Unmarshal(held.body.Bytes(), &answer) != nil || len(answer.Themes) != 1 || answer.Themes[0].Name == "" {
		h.Logger.Error("Ghost's answer to an upload has no theme, so its manifest was not looked at", zap.String("site", site.Name))
		return "failed"
	}
	report, err := h.take(ctx, site, answer.Themes[0].Name, upload.source())
	if err != nil {
		report.Findings = append(report.Findings, manifest.Finding{
			Field: "manifest", Severity: manifest.Error, Message: "the manifest could not be stored, so what was stored before stays; upload the theme again",
		})
	}
	held.add("_errors", report.Findings)
	if err != nil {
		return "failed"
	}
	return outcomeOfReport(report)
}

// take takes over a manifest. The report comes with the error, which is of the
// store.
func (h *ThemesAPI) take(ctx context.Context, site *ThemesSite, theme string, source themes.Source) (themes.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, storing)
	defer cancel()
	service, err := site.Themes()
	var report themes.Report
	if err == nil {
		report, err = service.Take(ctx, theme, source)
	} else {
		report, _ = themes.Read(ctx, source) // its errors are findings
	}
	if err != nil {
		h.Logger.Error("what Ghost took could not be stored", zap.String("site", site.Name), zap.String("theme", theme), zap.Error(err))
	}
	return report, err
}

// Scans bounds how many uploads are scanned at once, in all and of one site. Each
// scan takes 7 MB at most.
type Scans struct {
	limit, siteLimit int

	mu    sync.Mutex
	used  int
	sites map[string]int // those with scans
	freed chan struct{}  // closed when a scan ends, and made anew
}

// NewScans returns a bound.
func NewScans(limit, siteLimit int) *Scans {
	return &Scans{limit: limit, siteLimit: siteLimit, sites: make(map[string]int), freed: make(chan struct{})}
}

// scanWait is how long an upload waits to be scanned.
const scanWait = 5 * time.Second

// acquire reports whether an upload to a site may be scanned. If so, release
// follows.
func (s *Scans) acquire(ctx context.Context, site string) bool {
	ctx, cancel := context.WithTimeout(ctx, scanWait)
	defer cancel()
	for {
		freed, ok := s.tryAcquire(site)
		if ok {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *Scans) tryAcquire(site string) (freed chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.limit || s.sites[site] >= s.siteLimit {
		return s.freed, false
	}
	s.used++
	s.sites[site]++
	return nil, true
}

func (s *Scans) release(site string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.sites[site]--; s.sites[site] == 0 {
		delete(s.sites, site)
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

// upload is the body of a request with a theme, which is scanned as it is passed
// on.
type upload struct {
	io.ReadCloser
	scans   *Scans
	site    string
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

// begin has the theme scanned in a multipart/form-data body (RFC 7578) with a
// boundary. It was acquired from scans.
func (u *upload) begin(boundary, fileName string) {
	r, w := io.Pipe()
	s := &scan{seen: w, done: make(chan struct{}), scanner: themes.NewZipScanner(fileName)}
	u.scanned.Store(s)
	s.late = time.AfterFunc(maxScan, u.drop)
	go func() {
		defer close(s.done)
		s.read(r, boundary)
		_ = r.Close() // what follows the theme is of no interest
	}()
}

// read reads the parts up to the theme. Ghost takes a body with one.
func (s *scan) read(body io.Reader, boundary string) {
	limited := &io.LimitedReader{R: body, N: maxBeforeTheme}
	for parts := multipart.NewReader(bufio.NewReaderSize(limited, 64<<10), boundary); ; {
		part, err := parts.NextRawPart()
		if err != nil {
			return
		}
		if part.FormName() == "file" && part.FileName() != "" {
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
		u.scans.release(u.site)
	}
}

// Why an upload was not read.
var (
	errCutOff  = &themes.ArchiveError{Problem: "it could not be read on its way to Ghost; upload it again"}
	errBusy    = &themes.ArchiveError{Problem: "too many themes were uploaded at the same time; upload it again"}
	errUnknown = &themes.ArchiveError{Problem: "Ghost could not be asked who uploads it; upload it again"}
)

// source is where the manifest is, once the body was passed on.
func (u *upload) source() themes.Source {
	s, why := u.scanned.Load(), u.unread
	if s != nil {
		if s.end(); s.whole {
			return themes.FromZip(s.scanner)
		}
	}
	if why == nil {
		why = errCutOff
	}
	return func(context.Context) ([]byte, error) { return nil, why }
}
