package desk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/web/desk"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file is about what the platform's own admin shows. Its script, internal/web/desk/admin.js,
// asks for that here.

const (
	adminScript = "admin.js"
	adminData   = "admin.json"
)

// AdminScript is a path whose version changes with the script, so that browsers can cache it.
func (d *Desk) AdminScript() string {
	return d.Path + Path + "/" + adminScript + "?v=" + desk.Assets[adminScript].Version
}

// adminAnswer is what the script shows. Its lists are never null.
type adminResponse struct {
	// Curation is the address of the page that fills the homepage's slots, empty unless
	// the active theme has some.
	Curation string `json:"curation"`

	// Events is the address of the page of events, empty unless the active theme has event
	// types.
	Events string       `json:"events"`
	Themes []adminTheme `json:"themes"`
}

// adminTheme is a theme with a manifest, or a repository.
type adminTheme struct {
	Name     string             `json:"name"`
	Status   string             `json:"status"`
	Findings []manifest.Finding `json:"_errors"` // maxFindings at most
	More     int                `json:"more"`    // findings beyond these
	Refresh  string             `json:"refresh"` // where to, empty without a repository
}

// serveAdmin answers the script. Those of the staff who may not manage manifests are told
// of none.
func (d *Desk) serveAdmin(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr) api.Served {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	v := &view{desk: d, site: site, request: r}
	response, err := d.adminResponse(ctx, w, v, address)
	return d.writeAdmin(w, v, response, err)
}

// writeAdmin writes the response, or that for err unless it is nil.
func (d *Desk) writeAdmin(w http.ResponseWriter, v *view, response *adminResponse, err error) api.Served {
	failure := api.Failure{Status: http.StatusOK, Outcome: api.Done}
	var body any = response
	if err != nil {
		failure = d.failureOf(v, "admin", err)
		failure.SetRetryAfter(w.Header())
		body = map[string]string{"message": failure.Message}
	}
	text, _ := json.Marshal(body) // strings always encode
	api.Write(w, failure.Status, text)
	return api.Served{Operation: "admin", Outcome: failure.Outcome}
}

func (d *Desk) adminResponse(ctx context.Context, w http.ResponseWriter, v *view, address netip.Addr) (*adminResponse, error) {
	if v.site == nil {
		return nil, errNoPage
	}
	if method := v.request.Method; method != http.MethodGet && method != http.MethodHead {
		api.Allow(w.Header(), http.MethodGet, http.MethodHead)
		return nil, errMethod
	}
	response := &adminResponse{Themes: []adminTheme{}}
	var err error
	v.visitor, v.member, err = v.site.Staff.Authorize(ctx, v.request, address, api.MayManage)
	if errors.Is(err, api.ErrRole) {
		return response, nil
	}
	if err != nil {
		return nil, err
	}
	page, err := v.themesPage(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, theme := range page.Themes {
		if theme.IsActive && theme.IsCurated {
			response.Curation = d.Path + Path + "/curation"
		}
		if theme.IsActive && v.site.Events != nil {
			declared, _, err := v.site.Events.Declared(ctx, theme.Name)
			if err != nil {
				return nil, away(err)
			}
			if declared != nil {
				response.Events = d.Path + Path + "/events"
			}
		}
		if !theme.HasManifest && !theme.CanRefresh {
			continue
		}
		shown := adminTheme{Name: theme.Name, Status: theme.Status, Findings: theme.Findings, More: theme.More}
		if shown.Findings == nil {
			shown.Findings = []manifest.Finding{}
		}
		if theme.CanRefresh {
			shown.Refresh = d.Path + api.ThemesPath + "/" + url.PathEscape(theme.Name) + "/refresh"
		}
		response.Themes = append(response.Themes, shown)
	}
	return response, nil
}
