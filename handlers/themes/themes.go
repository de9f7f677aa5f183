// Package themes answers what the publication's staff ask about the manifests of their
// themes, and takes manifests over from uploads as they pass (docs/theme_manifest.md).
package themes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// API answers what the publication's staff ask about the manifests of their
// themes. All fields are required, but for switches.
type API struct {
	// Path is that of the platform's admin, such as /ghost.
	Path string

	// Platforms are the titles of those that have themes, such as Ghost.
	Platforms string

	// FileName is what a manifest is called.
	FileName string

	// Scans bounds the uploads that are scanned at once, by site. It may be shared. Each scan
	// takes 7 MB at most.
	Scans *limiter.Limiter

	// Unknown bounds, by site, the uploads of unknown senders whose responses are kept until they are
	// complete, of up to 1 MiB each. It may be shared.
	Unknown *limiter.Limiter

	// OmitsNotice leaves findings out of what the platform's admin shows after an upload.
	OmitsNotice bool

	Logger *zap.Logger
}

// SchemaPath is where, below the path of the platform's admin, the JSON Schema of
// manifests is.
const SchemaPath = "/lychgate/manifest.schema.json"

// request is what is asked about a theme.
type request struct {
	*themes.Service
	*api.StaffRequest

	theme     string
	imageSize string // the site's Default Featured Image Size, "" for none
}

// routes are those of a theme, by what is behind its name; those of all themes are behind
// no name.
var (
	routes = map[string][]api.Route[*request]{
		"manifest":        {{Operation: "manifest", Method: http.MethodGet, Do: (*request).report}},
		"event-types":     {{Operation: "event_types", Method: http.MethodGet, Do: (*request).listEventTypes}},
		"curation":        {{Operation: "curation", Method: http.MethodGet, Do: (*request).readCuration}},
		"refresh":         {{Operation: "refresh", Method: http.MethodPost, Do: (*request).refresh}},
		"events/validate": {{Operation: "validate", Method: http.MethodPost, Do: (*request).validateEvent}},
	}
	allThemes = []api.Route[*request]{{Operation: "list", Method: http.MethodGet, Do: (*request).list}}
)

// Serve answers a request below [api.ThemesPath] from an address, for a site or for no
// site if that is nil. Operations are those of the routes, and other.
func (h *API) Serve(w http.ResponseWriter, r *http.Request, site *api.Site, address netip.Addr) api.Served {
	found, theme := h.find(r)
	staff := api.StaffAPI[*request]{
		Platforms: h.Platforms, Subject: "themes", MaxBody: maxEvent, Logger: h.Logger,
		Prepare: func(ctx context.Context, r *api.StaffRequest) (*request, error) { return prepare(ctx, r, site, theme) },
	}
	served, err := staff.Serve(w, r, site, address, found)
	switch f := api.FailureOf(err); {
	case err == nil:
	case f.IsOfRepository():
		h.Logger.Warn("cannot refresh theme", zap.String("site", site.Name), zap.Error(err))
	case errors.Is(err, api.ErrStaffUnknown) && !errors.Is(err, context.Canceled): // the caller has left
		h.Logger.Error(fmt.Sprintf("%s does not say who is signed in; is its address in platform %s right?", site.Kind.Title, site.Kind.Name),
			zap.String("site", site.Name), zap.Error(err))
	}
	return served
}

// find has no routes for a path that names no theme a store may have.
func (h *API) find(r *http.Request) (found []api.Route[*request], theme string) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.EscapedPath(), "/"), h.Path+api.ThemesPath)
	if rest == "" && ok {
		return allThemes, ""
	}
	name, what, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	theme, err := url.PathUnescape(name)
	if !ok || rest[0] != '/' || err != nil || theme == "" || !api.IsText(theme) {
		return nil, ""
	}
	return routes[what], theme
}

// maxEvent bounds the values of an event, in bytes.
const maxEvent = 1 << 20

func prepare(ctx context.Context, r *api.StaffRequest, site *api.Site, theme string) (p *request, err error) {
	p = &request{StaffRequest: r, theme: theme}
	if p.Service, err = site.Themes(); err != nil {
		return nil, err
	}
	if site.ImageSize != nil {
		p.imageSize, err = site.ImageSize(ctx)
	}
	return p, err
}

// listedTheme is a theme in the list of all.
type listedTheme struct {
	Name      string             `json:"name"`
	Status    string             `json:"status"`
	Count     int                `json:"count"` // of findings
	Findings  []manifest.Finding `json:"_errors"`
	Curation  string             `json:"homepage_curation"` // active or inactive
	UpdatedAt string             `json:"updated_at"`        // of the last upload or refresh
}

func (r *request) list(ctx context.Context) (api.Response, error) {
	list, err := r.List(ctx, themes.AllFindings)
	if err != nil {
		return api.Response{}, err
	}
	listed := []listedTheme{}
	for _, t := range list {
		curation := "inactive"
		if t.IsCurated {
			curation = "active"
		}
		listed = append(listed, listedTheme{t.Name, t.Status(), t.Total, t.Findings, curation, api.Time(t.UpdatedAt)})
	}
	return api.Response{Body: struct {
		Themes []listedTheme `json:"themes"`
	}{listed}}, nil
}

func (r *request) report(ctx context.Context) (api.Response, error) {
	t, err := r.Find(ctx, r.theme)
	if err != nil {
		return api.Response{}, err
	}
	return respond(t.Report()), nil
}

// eventTypes are what the event editor needs, and what the banner above it says.
type eventTypes struct {
	DefaultTags []string           `json:"default_tags"`
	Types       []listedEventType  `json:"types"`
	Findings    []manifest.Finding `json:"_errors"`
}

// listedEventType is an event type in a list, which keeps its place for those
// whose JSON objects have no order.
type listedEventType struct {
	Key string `json:"key"`
	manifest.EventType
	FeatureImage featureImage `json:"feature_image"`
}

// featureImage is what the editor shows of the featured image, and does: what the type
// says, or else the site's setting, or else what is built in.
type featureImage struct {
	Phrase    string `json:"phrase"`
	CropRatio string `json:"crop_ratio,omitempty"` // free if there is none
	MinWidth  int    `json:"min_width,omitempty"`  // pixels
	MinHeight int    `json:"min_height,omitempty"` // pixels
}

func listEventType(t manifest.EventType, siteSize string) listedEventType {
	c := t.FieldConstraints.Of("feature_image")
	return listedEventType{t.Key, t, featureImage{t.ImagePhrase(siteSize), c.AspectRatio, c.MinWidth, c.MinHeight}}
}

func (r *request) listEventTypes(ctx context.Context) (api.Response, error) {
	events, findings, err := r.Events(ctx, r.theme)
	if err != nil {
		return api.Response{}, err
	}
	response := eventTypes{[]string{}, []listedEventType{}, findings}
	if events != nil {
		response.DefaultTags = events.DefaultTags
		for _, eventType := range events.Types {
			response.Types = append(response.Types, listEventType(eventType, r.imageSize))
		}
	}
	return api.Response{Body: response}, nil
}

func (r *request) readCuration(ctx context.Context) (api.Response, error) {
	t, err := r.Find(ctx, r.theme)
	if err != nil {
		return api.Response{}, err
	}
	if curation := t.Curation(); curation != nil {
		return api.Response{Body: curation}, nil
	}
	return api.Response{}, api.ErrNotCurated
}

func (r *request) refresh(ctx context.Context) (api.Response, error) {
	report, err := r.Refresh(ctx, r.theme)
	return respond(report), err
}

// publication is whether an event may be published, and how.
type publication struct {
	Valid        bool               `json:"valid"`
	Problems     []manifest.Problem `json:"problems"`
	PostTemplate string             `json:"post_template"`
	Tags         []string           `json:"tags"`
}

func (r *request) validateEvent(ctx context.Context) (api.Response, error) {
	var event struct {
		Type   string         `json:"type"`
		Values map[string]any `json:"values"`
	}
	if err := r.ReadJSON(&event, errNoEvent); err != nil {
		return api.Response{}, err
	}
	events, _, err := r.Events(ctx, r.theme)
	if err != nil {
		return api.Response{}, err
	}
	eventType, ok := events.Type(event.Type)
	if !ok {
		return api.Response{}, api.NoEventType(event.Type, events)
	}
	problems := eventType.Publish(event.Values)
	return api.Response{Body: publication{len(problems) == 0, problems, eventType.PostTemplate, events.EventTags(eventType)}}, nil
}

var errNoEvent = api.Invalid(`Send JSON such as {"type": "webinar", "values": {"name": "An evening"}}.`)

func respond(report themes.Report) api.Response {
	return api.Response{Body: report, Outcome: api.OutcomeOf(report)}
}
