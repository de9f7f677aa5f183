package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/themes"
)

// ThemesAPI answers what the publication's staff ask about the manifests of their
// themes. All fields are required, but for switches.
type ThemesAPI struct {
	// Path is that of the platform's admin, such as /ghost.
	Path string

	// Platforms are the titles of those that have themes, such as Ghost.
	Platforms string

	// FileName is what a manifest is called.
	FileName string

	// Scans bounds the uploads that are scanned at once, by site. It may be shared. Each scan
	// takes 7 MB at most.
	Scans *limiter.Limiter

	// OmitsNotice leaves findings out of what the platform's admin shows after an upload.
	OmitsNotice bool

	Logger *zap.Logger
}

// ThemesSite is a site as the themes API sees it.
type ThemesSite struct {
	Name     string // in logs
	Kind     platform.Kind
	Platform platform.ThemeHost
	Staff    *Staff

	// Themes returns the site's themes. An error means that the store is away.
	Themes func() (*themes.Service, error)

	// ImageSize returns the site's Default Featured Image Size, "" for none. It is nil where
	// the site has no events.
	ImageSize func(ctx context.Context) (string, error)

	active   activeTheme
	requests atomic.Int32 // of staff about the homepage and on the desk, under way
}

// maxRequests bounds what the staff of a site ask for at once. Each may last a minute where
// the platform is slow, and hold what it says.
const maxRequests = 16

// Begin counts a request of somebody who may make it, until it ends. Errors are those of
// [FailureOf].
func (s *ThemesSite) Begin() (end func(), err error) {
	if s.requests.Add(1) > maxRequests {
		s.requests.Add(-1)
		return nil, &tooManyError{time.Second, "requests of the staff at once"}
	}
	return func() { s.requests.Add(-1) }, nil
}

// activeTheme is the theme that was active a moment ago.
type activeTheme struct {
	mu    sync.Mutex
	name  string
	until time.Time
}

// activeTTL is how long a theme is taken to be the active one.
const activeTTL = 3 * time.Second

// Active returns the name of the active theme, as the platform tells a visitor, who may
// see the themes. Errors are those of [FailureOf].
func (s *ThemesSite) Active(ctx context.Context, visitor platform.Visitor) (string, error) {
	s.active.mu.Lock()
	name, isFresh := s.active.name, time.Now().Before(s.active.until)
	s.active.mu.Unlock()
	if isFresh {
		return name, nil
	}
	list, err := s.Installed(ctx, visitor)
	if errors.Is(err, platform.ErrNotStaff) {
		return "", &titledError{errNotStaff, s.Kind.Title}
	}
	if err != nil {
		return "", unanswered(s.Kind.Title, err)
	}
	for _, theme := range list {
		if theme.IsActive {
			return theme.Name, nil
		}
	}
	return "", unanswered(s.Kind.Title, errNoActive)
}

// Installed returns the themes of the platform, as it tells a visitor, and notes which is
// active. Errors are those of the platform.
func (s *ThemesSite) Installed(ctx context.Context, visitor platform.Visitor) ([]platform.InstalledTheme, error) {
	list, err := s.Platform.Installed(ctx, visitor)
	if err != nil {
		return nil, err
	}
	for _, theme := range list {
		if theme.IsActive {
			s.active.mu.Lock()
			s.active.name, s.active.until = theme.Name, time.Now().Add(activeTTL)
			s.active.mu.Unlock()
		}
	}
	return list, nil
}

var errNoActive = errors.New("no theme is active")

// unanswered returns the error of a platform, with a title, that did not answer as it should.
func unanswered(title string, err error) error {
	return fmt.Errorf("%w (%w)", &titledError{errSilent, title}, err)
}

// ThemesPath is where, behind the path of the platform's admin, the API is.
const ThemesPath = "/lychgate/themes"

// endpoint is what can be asked about themes.
type endpoint struct {
	operation string
	method    string // GET stands for HEAD too
	serve     func(ctx context.Context, s siteThemes, theme string, body io.Reader) (any, error)
}

// siteThemes are the themes of a site.
type siteThemes struct {
	*themes.Service

	imageSize string // the site's Default Featured Image Size, "" for none
}

// endpoints are those of a theme, by what is behind its name; that of all themes
// is behind no name.
var endpoints = map[string]endpoint{
	"manifest":        {"manifest", http.MethodGet, reportTheme},
	"event-types":     {"event_types", http.MethodGet, listEventTypes},
	"curation":        {"curation", http.MethodGet, readCuration},
	"refresh":         {"refresh", http.MethodPost, refreshTheme},
	"events/validate": {"validate", http.MethodPost, validateEvent},
}

var allThemes = endpoint{"list", http.MethodGet, listThemes}

// Serve answers a request below ThemesPath from an address, for a site or for no
// site if that is nil. Operations are those of the endpoints, and other.
func (h *ThemesAPI) Serve(w http.ResponseWriter, r *http.Request, site *ThemesSite, address netip.Addr) Served {
	e, theme, ok := h.find(r)
	answer, err := any(nil), error(errNoThemeEndpoint)
	switch {
	case site == nil:
		err = &titledError{errNoThemes, h.Platforms}
	case !ok:
		e.operation = "other"
	case r.Method != e.method && (r.Method != http.MethodHead || e.method != http.MethodGet):
		e.operation = "other"
		w.Header().Set("Allow", allowed(e.method))
		err = errNotAllowed
	default:
		answer, err = h.answer(w, r, site, address, e, theme)
	}
	served := Served{Operation: e.operation, Outcome: Done}
	if err != nil {
		served.Outcome = h.writeError(w, site, err)
		return served
	}
	if report, ok := answer.(themes.Report); ok {
		served.Outcome = outcomeOfReport(report)
	}
	writeStaff(w, http.StatusOK, answer)
	return served
}

func allowed(method string) string {
	if method == http.MethodGet {
		return "GET, HEAD"
	}
	return method
}

// find returns the endpoint of a request, and the theme that it is about.
func (h *ThemesAPI) find(r *http.Request) (e endpoint, theme string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.EscapedPath(), "/"), h.Path+ThemesPath)
	if rest == "" {
		return allThemes, "", ok
	}
	name, what, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	theme, err := url.PathUnescape(name)
	e, known := endpoints[what]
	return e, theme, ok && rest[0] == '/' && known && err == nil && theme != "" && utf8.ValidString(theme) && !strings.Contains(theme, "\x00")
}

const (
	// staffPatience bounds a request, in which a repository may be read.
	staffPatience = time.Minute

	// maxEvent bounds the values of an event, in bytes.
	maxEvent = 1 << 20
)

func (h *ThemesAPI) answer(w http.ResponseWriter, r *http.Request, site *ThemesSite, address netip.Addr, e endpoint, theme string) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), staffPatience)
	defer cancel()
	if err := site.Staff.authorize(ctx, r, address); err != nil {
		return nil, err
	}
	service, err := site.Themes()
	if err != nil {
		return nil, err
	}
	of := siteThemes{Service: service}
	if site.ImageSize != nil {
		if of.imageSize, err = site.ImageSize(ctx); err != nil {
			return nil, err
		}
	}
	return e.serve(ctx, of, theme, http.MaxBytesReader(w, r.Body, maxEvent))
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

func listThemes(ctx context.Context, s siteThemes, _ string, _ io.Reader) (any, error) {
	list, err := s.List(ctx, themes.AllFindings)
	if err != nil {
		return nil, err
	}
	listed := []listedTheme{}
	for _, t := range list {
		curation := "inactive"
		if t.IsCurated {
			curation = "active"
		}
		listed = append(listed, listedTheme{t.Name, t.Status(), t.Total, t.Findings, curation, timestamp(t.UpdatedAt)})
	}
	return struct {
		Themes []listedTheme `json:"themes"`
	}{listed}, nil
}

func reportTheme(ctx context.Context, s siteThemes, theme string, _ io.Reader) (any, error) {
	t, err := s.Find(ctx, theme)
	if err != nil {
		return nil, err
	}
	return t.Report(), nil
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
	c, _ := t.FeatureImage()
	return listedEventType{t.Key, t, featureImage{t.ImagePhrase(siteSize), t.CropRatio(), c.MinWidth, c.MinHeight}}
}

func listEventTypes(ctx context.Context, s siteThemes, theme string, _ io.Reader) (any, error) {
	t, err := s.Find(ctx, theme)
	if err != nil {
		return nil, err
	}
	answer := eventTypes{[]string{}, []listedEventType{}, t.Findings}
	if events := t.Events(); events != nil {
		answer.DefaultTags = events.DefaultTags
		for _, eventType := range events.Types {
			answer.Types = append(answer.Types, listEventType(eventType, s.imageSize))
		}
	}
	return answer, nil
}

func readCuration(ctx context.Context, s siteThemes, theme string, _ io.Reader) (any, error) {
	t, err := s.Find(ctx, theme)
	if err != nil {
		return nil, err
	}
	if curation := t.Curation(); curation != nil {
		return curation, nil
	}
	return nil, errInactive
}

func refreshTheme(ctx context.Context, s siteThemes, theme string, _ io.Reader) (any, error) {
	return s.Refresh(ctx, theme)
}

// publication is whether an event may be published, and how.
type publication struct {
	Valid        bool               `json:"valid"`
	Problems     []manifest.Problem `json:"problems"`
	PostTemplate string             `json:"post_template"`
	Tags         []string           `json:"tags"`
}

func validateEvent(ctx context.Context, s siteThemes, theme string, body io.Reader) (any, error) {
	var event struct {
		Type   string         `json:"type"`
		Values map[string]any `json:"values"`
	}
	text, err := io.ReadAll(body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errTooLarge
	}
	if err != nil || unmarshal(text, &event) != nil {
		return nil, errNoEvent
	}
	t, err := s.Find(ctx, theme)
	if err != nil {
		return nil, err
	}
	events := t.Events()
	eventType, ok := events.Type(event.Type)
	if !ok {
		return nil, noType(event.Type, events)
	}
	problems := eventType.Publish(event.Values)
	return publication{len(problems) == 0, problems, eventType.PostTemplate, events.EventTags(eventType)}, nil
}

// Errors that are about a theme.
var (
	errNoThemeEndpoint = &statusError{http.StatusNotFound, NotFound, errNoEndpoint.message}
	errNoThemes        = &statusError{http.StatusNotFound, NotFound, "There is no site with a %s at this address."}
	errInactive        = &statusError{http.StatusNotFound, NotFound, "Homepage Curation is inactive: it starts with a manifest that has it and no finding."}
	errSilent          = &statusError{http.StatusBadGateway, Failed, "%s does not answer as it should. Try again in a moment."}
	errNoEvent         = &statusError{http.StatusUnprocessableEntity, Other, `Send JSON such as {"type": "webinar", "values": {"name": "An evening"}}.`}
)

// noType says which event types there are.
func noType(key string, events *manifest.Events) error {
	message := fmt.Sprintf("The theme has no event type %q.", key)
	if events != nil {
		var keys []string
		for _, eventType := range events.Types {
			keys = append(keys, fmt.Sprintf("%q", eventType.Key))
		}
		message += " It has " + strings.Join(keys, ", ") + "."
	}
	return &statusError{http.StatusUnprocessableEntity, Other, message}
}

// staffFailure is the body of an answer to a request that was not done.
type staffFailure struct {
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"` // of a refresh
}

// writeError writes the answer for an error, and returns its outcome.
func (h *ThemesAPI) writeError(w http.ResponseWriter, site *ThemesSite, err error) Outcome {
	f := FailureOf(err)
	switch {
	case f.Reason != "":
		h.Logger.Warn("a theme could not be refreshed", zap.String("site", site.Name), zap.Error(err))
	case errors.Is(err, errNobodySays) && !errors.Is(err, context.Canceled): // the caller has left
		h.Logger.Error(fmt.Sprintf("%s does not say who is signed in; is its address in platform %s right?", site.Kind.Title, site.Kind.Name),
			zap.String("site", site.Name), zap.Error(err))
	case f.IsUnforeseen:
		h.Logger.Error("a request about themes failed", zap.String("site", site.Name), zap.Error(err))
	}
	f.SetHeader(w.Header())
	writeStaff(w, f.Status, staffFailure{Message: f.Message, Reason: f.Reason})
	return f.Outcome
}

// writeStaff writes an answer, which no other site may read.
func writeStaff(w http.ResponseWriter, status int, answer any) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", noStore)
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(answer) // an error means that the caller has left
}

func outcomeOfReport(report themes.Report) Outcome {
	switch {
	case report.Status == themes.NoManifest:
		return Removed
	case len(report.Findings) > 0:
		return Findings
	}
	return Valid
}
