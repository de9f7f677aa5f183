package themes

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// MayChange reports whether a request may change a theme on some platform. That is
// quick to tell; Changes is asked next.
func (h *API) MayChange(r *http.Request) bool {
	p := r.URL.Path
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions &&
		len(p) >= len(h.Path) && strings.EqualFold(p[:len(h.Path)], h.Path)
}

// Changes is the change that a request makes to the themes of a site's platform, for
// which it is to be watched.
func (h *API) Changes(r *http.Request, site *api.Site) (platform.ThemeChange, bool) {
	if !h.MayChange(r) {
		return platform.ThemeChange{}, false
	}
	return site.Platform.ChangesTheme(r.Method, r.URL.Path[len(h.Path):])
}

// maxDeleted and maxUnscanned bound what is kept of a response to a request that deletes a theme, and to
// an upload that is not scanned, in bytes. Both may come from strangers. Ghost's have none, and some hundred
// kilobytes.
const maxDeleted, maxUnscanned = 4 << 10, 1 << 20

// storeTimeout bounds the time to store a manifest.
const storeTimeout = 10 * time.Second

// Watch passes a request on that makes a change, as [API.Changes] says. If the
// platform took a theme, its manifest is taken over, and the findings are added to the
// platform's response, which its admin shows (docs/theme_manifest.md#uploads). If it removed
// one, what is kept of it is cleared. If it refused, nothing changes.
//
// An upload is scanned as it is passed on, and never kept whole. The platform is asked
// first whether the session or the token of the request, which is from an address,
// is valid; if not, nothing is scanned. The error is that of next.
func (h *API) Watch(w http.ResponseWriter, r *http.Request, site *api.Site, change platform.ThemeChange, address netip.Addr, next api.Next) (api.Served, error) {
	ctx, cancel := api.Outlive(r.Context())
	defer cancel()
	passed := r.Clone(ctx)
	passed.Header.Set("Accept-Encoding", "identity") // so that the response can be read
	buffered := &api.BufferedResponse{ResponseWriter: w}
	served := api.Served{Operation: "remove", Outcome: api.Other}
	if change.Deleted != "" {
		buffered.Max = maxDeleted
		err := next(buffered, passed)
		if err == nil && buffered.IsBuffered() {
			served.Outcome = h.removed(ctx, site, change.Deleted)
		}
		buffered.Release()
		return served, err
	}
	served.Operation = "upload"
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Body == nil {
		return served, next(w, r) // the platform refuses it
	}
	upload := &upload{ReadCloser: passed.Body, scans: h.Scans, site: site.Name, title: site.Kind.Title}
	switch {
	case !site.Staff.MayUpload(ctx, r, address):
		upload.unread = errUnknown(upload.title)
		buffered.Max = api.BufferNothing
		if h.Unknown.TryAcquire(site.Name) {
			defer h.Unknown.Release(site.Name)
			buffered.Max = maxUnscanned
		}
	case err != nil || parameters["boundary"] == "": // the platform may take another one for the boundary
		upload.unread = errNoBoundary
		buffered.Max = maxUnscanned
	case !acquireScan(ctx, h.Scans, site.Name):
		upload.unread = errBusy
		buffered.Max = maxUnscanned
	default:
		upload.begin(parameters["boundary"], change.Field, h.FileName)
	}
	defer upload.drop()
	buffered.Passing = upload.drop
	passed.Body = upload
	err = next(buffered, passed)
	switch {
	case err == nil && buffered.IsBuffered():
		served.Outcome = h.uploaded(ctx, site, buffered, upload)
	case err == nil && buffered.Status >= http.StatusOK && buffered.Status < http.StatusMultipleChoices:
		h.Logger.Error(site.Kind.Title+"'s response to a theme upload cannot be read, so its manifest was not read", zap.String("site", site.Name))
		served.Outcome = api.Failed
	}
	buffered.Release()
	return served, err
}

// removed clears what is kept of a theme.
func (h *API) removed(ctx context.Context, site *api.Site, theme string) api.Outcome {
	report, err := h.take(ctx, site, theme, func(context.Context) ([]byte, error) { return nil, themes.ErrNoManifest })
	if err != nil {
		return api.Failed
	}
	return api.OutcomeOf(report)
}

// uploaded takes over the manifest of a theme that the platform took, and adds what was
// found to its response.
func (h *API) uploaded(ctx context.Context, site *api.Site, buffered *api.BufferedResponse, upload *upload) api.Outcome {
	theme, err := site.Platform.ReadUploaded(buffered.Body.Bytes())
	if err != nil {
		h.Logger.Error(site.Kind.Title+"'s response to a theme upload names no theme, so its manifest was not read", zap.String("site", site.Name), zap.Error(err))
		return api.Failed
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
	findings, _ := json.Marshal(report.Findings) // strings always encode
	buffered.Replace(site.Platform.AddFindings(buffered.Body.Bytes(), findings, h.notice(report, kept)))
	if err != nil {
		return api.Failed
	}
	return api.OutcomeOf(report)
}

// take takes over a manifest. The report comes with the error, which is of the
// store.
func (h *API) take(ctx context.Context, site *api.Site, theme string, source themes.Source) (themes.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	service, err := site.Themes()
	var report themes.Report
	if err == nil {
		report, err = service.Take(ctx, theme, source)
	} else {
		report, _ = themes.Read(ctx, source) // its errors are findings
	}
	if err != nil {
		h.Logger.Error("cannot store the manifest of a theme that "+site.Kind.Title+" took", zap.String("site", site.Name), zap.String("theme", theme), zap.Error(err))
	}
	return report, err
}

// kept is what the store has of a theme, nil while the store is away.
func (*API) kept(ctx context.Context, site *api.Site, theme string) *themes.Theme {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	service, err := site.Themes()
	if err != nil {
		return nil
	}
	found, err := service.Find(ctx, theme)
	if err != nil {
		return nil
	}
	return &found
}
