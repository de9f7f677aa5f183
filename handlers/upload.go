package handlers

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
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
func (h *ThemesAPI) Watch(w http.ResponseWriter, r *http.Request, site *ThemesSite, address netip.Addr, next Next) (Served, error) {
	ctx, cancel := outlive(r.Context())
	defer cancel()
	passed := r.Clone(ctx)
	passed.Header.Set("Accept-Encoding", "identity") // so that the answer can be read
	held := &heldAnswer{ResponseWriter: w}
	served := Served{Operation: "remove", Outcome: Other}
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
		served.Outcome = Failed
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
func (h *ThemesAPI) removed(ctx context.Context, site *ThemesSite, path string) Outcome {
	name := adminThemes.FindStringSubmatch(path[len(h.Path):])[1]
	report, err := h.take(ctx, site, name, func(context.Context) ([]byte, error) { return nil, themes.ErrNoManifest })
	if err != nil {
		return Failed
	}
	return outcomeOfReport(report)
}

// uploaded takes over the manifest of a theme that Ghost took, and adds what was
// found to its answer.
func (h *ThemesAPI) uploaded(ctx context.Context, site *ThemesSite, held *heldAnswer, upload *upload) Outcome {
	var answer struct {
		Themes []struct {
			Name string `json:"name"`
		} `json:"themes"`
	}
	if json.Unmarshal(held.body.Bytes(), &answer) != nil || len(answer.Themes) != 1 || answer.Themes[0].Name == "" {
		h.Logger.Error("Ghost's answer to an upload has no theme, so its manifest was not looked at", zap.String("site", site.Name))
		return Failed
	}
	report, err := h.take(ctx, site, answer.Themes[0].Name, upload.source())
	if err != nil {
		report.Findings = append(report.Findings, manifest.Finding{
			Field: "manifest", Severity: manifest.Error, Message: "the manifest could not be stored, so what was stored before stays; upload the theme again",
		})
	}
	held.add("_errors", report.Findings)
	if err != nil {
		return Failed
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
