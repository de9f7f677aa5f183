package handlers

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/themes"
)

// Next passes a request on to the platform.
type Next func(http.ResponseWriter, *http.Request) error

// MayChange reports whether a request may change a theme on some platform. That is
// quick to tell; Changes is asked next.
func (h *ThemesAPI) MayChange(r *http.Request) bool {
	p := r.URL.Path
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions &&
		len(p) >= len(h.Path) && strings.EqualFold(p[:len(h.Path)], h.Path)
}

// Changes returns the change that a request makes to the themes of a site's platform, for
// which it is to be watched.
func (h *ThemesAPI) Changes(r *http.Request, site *ThemesSite) (platform.ThemeChange, bool) {
	if !h.MayChange(r) {
		return platform.ThemeChange{}, false
	}
	return site.Platform.ChangesTheme(r.Method, r.URL.Path[len(h.Path):])
}

const (
	// afterwards is how long the platform has to answer once whoever uploaded a theme
	// has left: it may have taken the theme all the same.
	afterwards = 15 * time.Second

	// storing bounds the time to store what was found.
	storing = 10 * time.Second
)

// Watch passes a request on that makes a change, as [ThemesAPI.Changes] says. If the
// platform took a theme, its manifest is taken over, and the findings are added to the
// platform's answer, which its admin shows (docs/theme_manifest.md#uploads); if it removed one, what is kept of
// it is cleared. If it refused, nothing changes.
//
// An upload is scanned as it is passed on, and never kept whole. The platform is asked
// first whether the session or the token of the request, which is from an address,
// is valid; if not, nothing is scanned. The error is that of next.
func (h *ThemesAPI) Watch(w http.ResponseWriter, r *http.Request, site *ThemesSite, change platform.ThemeChange, address netip.Addr, next Next) (Served, error) {
	ctx, cancel := outlive(r.Context())
	defer cancel()
	passed := r.Clone(ctx)
	passed.Header.Set("Accept-Encoding", "identity") // so that the answer can be read
	held := &heldAnswer{ResponseWriter: w}
	served := Served{Operation: "remove", Outcome: Other}
	if change.Deleted != "" {
		err := next(held, passed)
		if err == nil && held.holds() {
			served.Outcome = h.removed(ctx, site, change.Deleted)
		}
		held.release()
		return served, err
	}
	served.Operation = "upload"
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || parameters["boundary"] == "" || r.Body == nil {
		return served, next(w, r) // the platform refuses it
	}
	upload := &upload{ReadCloser: passed.Body, scans: h.Scans, site: site.Name, title: site.Kind.Title}
	switch {
	case !site.Staff.mayUpload(ctx, r, address):
		upload.unread = errUnknown(upload.title)
	case !acquireScan(ctx, h.Scans, site.Name):
		upload.unread = errBusy
	default:
		upload.begin(parameters["boundary"], change.Field, h.FileName)
	}
	defer upload.drop()
	held.passing = upload.drop
	passed.Body = upload
	err = next(held, passed)
	switch {
	case err == nil && held.holds():
		served.Outcome = h.uploaded(ctx, site, held, upload)
	case err == nil && held.status >= http.StatusOK && held.status < http.StatusMultipleChoices:
		h.Logger.Error(site.Kind.Title+"'s answer to an upload cannot be read, so its manifest was not looked at", zap.String("site", site.Name))
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
func (h *ThemesAPI) removed(ctx context.Context, site *ThemesSite, theme string) Outcome {
	report, err := h.take(ctx, site, theme, func(context.Context) ([]byte, error) { return nil, themes.ErrNoManifest })
	if err != nil {
		return Failed
	}
	return outcomeOfReport(report)
}

// uploaded takes over the manifest of a theme that the platform took, and adds what was
// found to its answer.
func (h *ThemesAPI) uploaded(ctx context.Context, site *ThemesSite, held *heldAnswer, upload *upload) Outcome {
	theme, err := site.Platform.ReadUploaded(held.body.Bytes())
	if err != nil {
		h.Logger.Error(site.Kind.Title+"'s answer to an upload has no theme, so its manifest was not looked at", zap.String("site", site.Name), zap.Error(err))
		return Failed
	}
	report, err := h.take(ctx, site, theme, upload.source())
	var kept *themes.Theme
	if err != nil {
		report.Findings = append(report.Findings, manifest.Finding{
			Field: "manifest", Severity: manifest.Error, Message: "the manifest could not be stored, so what was stored before stays; upload the theme again",
		})
	} else if len(report.Findings) > 0 {
		kept = h.kept(ctx, site, theme)
	}
	held.replace(site.Platform.AddFindings(held.body.Bytes(), encodeFindings(report.Findings), h.notice(report, kept)))
	if err != nil {
		return Failed
	}
	return outcomeOfReport(report)
}

func encodeFindings(findings []manifest.Finding) []byte {
	list, err := json.Marshal(findings)
	if err != nil {
		panic(err) // strings always encode
	}
	return list
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
		h.Logger.Error("what "+site.Kind.Title+" took could not be stored", zap.String("site", site.Name), zap.String("theme", theme), zap.Error(err))
	}
	return report, err
}
