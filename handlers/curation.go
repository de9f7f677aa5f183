package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/curation"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// CurationAPI answers what the publication's staff ask about the slots of their homepage,
// and fills them. All fields are required.
type CurationAPI struct {
	// Path is that of the platform's admin, such as /ghost.
	Path string

	// Platforms are the titles of those that have posts, such as Ghost.
	Platforms string

	Logger *zap.Logger
}

// CurationSite is a site as the curation API sees it.
type CurationSite struct {
	*ThemesSite

	Posts platform.PostHost

	// Curator returns what fills the slots. An error means that the store is away.
	Curator func() (*curation.Curator, error)
}

// CurationPath is where, behind the path of the platform's admin, the API is.
const CurationPath = "/lychgate/curation"

// ActiveHomepage is the homepage that the active theme declares.
type ActiveHomepage struct {
	*curation.Homepage
	Theme string

	// IsLatest means that the theme's latest manifest is the one that is used, and not an
	// earlier one without findings.
	IsLatest bool
}

// Homepage returns the homepage that the active theme declares, as the platform tells a
// visitor. Errors are those of [FailureOf].
func (s *CurationSite) Homepage(ctx context.Context, visitor platform.Visitor) (ActiveHomepage, error) {
	theme, err := s.Active(ctx, visitor)
	if err != nil {
		return ActiveHomepage{}, err
	}
	themes, err := s.Themes()
	if err != nil {
		return ActiveHomepage{}, err
	}
	kept, err := themes.Find(ctx, theme)
	if err != nil {
		return ActiveHomepage{}, err
	}
	declared := kept.Curation()
	if declared == nil {
		return ActiveHomepage{}, errInactive
	}
	curator, err := s.Curator()
	if err != nil {
		return ActiveHomepage{}, err
	}
	home := &curation.Homepage{Site: s.Name, Posts: s.Posts, Curator: curator, Declared: declared}
	return ActiveHomepage{home, theme, len(kept.Findings) == 0}, nil
}

// These are the answers. Each has its lists, empty ones too.
type (
	homepageAnswer struct {
		Theme    string          `json:"theme"`
		IsLatest bool            `json:"is_latest"`
		Sections []sectionAnswer `json:"sections"`
	}

	sectionAnswer struct {
		Key         string          `json:"key"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Picker      manifest.Picker `json:"picker"`
		Slots       []slotAnswer    `json:"slots"`
	}

	slotAnswer struct {
		manifest.Slot
		Posts   []postAnswer   `json:"posts"`
		Total   int            `json:"total"`   // of the posts that carry the tag
		Pending *pendingAnswer `json:"pending"` // null unless the platform does not have it yet
	}

	pendingAnswer struct {
		Post    *string `json:"post"` // null for none
		Since   string  `json:"since"`
		Problem string  `json:"problem"`
	}

	postAnswer struct {
		ID          string   `json:"id"`
		Title       string   `json:"title"`
		Status      string   `json:"status"`
		Picture     *string  `json:"picture"`
		Authors     []string `json:"authors"`
		PublishedAt *string  `json:"published_at"`
		Edit        string   `json:"edit"` // the path of its editor
	}
)

// Serve answers a request below CurationPath from an address, for a site or for no site if
// that is nil. Operations are show, pick, fill, clear and other.
func (h *CurationAPI) Serve(w http.ResponseWriter, r *http.Request, site *CurationSite, address netip.Addr) Served {
	operation, status, answer, err := "other", 0, any(nil), error(&titledError{errNoThemes, h.Platforms})
	if site != nil {
		ctx, cancel := context.WithTimeout(r.Context(), staffPatience)
		defer cancel()
		operation, status, answer, err = h.answer(ctx, w, r, site, address)
	}
	if err == nil {
		writeStaff(w, status, answer)
		if status == http.StatusAccepted {
			return Served{operation, Queued}
		}
		return Served{operation, Done}
	}
	f := FailureOf(err)
	if f.IsUnforeseen || errors.Is(err, errSilent) && !errors.Is(err, context.Canceled) {
		h.Logger.Error("a request about the homepage failed", zap.String("site", site.Name), zap.Error(err))
	}
	f.SetHeader(w.Header())
	writeStaff(w, f.Status, staffFailure{Message: f.Message})
	return Served{operation, f.Outcome}
}

func (h *CurationAPI) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, site *CurationSite, address netip.Addr) (operation string, status int, answer any, err error) {
	var keys []string
	rest := strings.Trim(strings.TrimPrefix(r.URL.EscapedPath(), h.Path+CurationPath), "/")
	for key := range strings.SplitSeq(rest, "/") {
		plain, err := url.PathUnescape(key)
		if err != nil {
			return "other", 0, nil, errNoThemeEndpoint
		}
		keys = append(keys, plain)
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case rest == "" && reads:
		operation = "show"
	case len(keys) == 2 && keys[1] == "picker" && reads:
		operation = "pick"
	case len(keys) == 2 && r.Method == http.MethodPut:
		operation = "fill"
	case len(keys) == 2 && r.Method == http.MethodDelete:
		operation = "clear"
	case len(keys) == 2 || rest == "":
		methods := "GET, HEAD"
		if rest != "" {
			methods = "PUT, DELETE"
		}
		if len(keys) == 2 && keys[1] == "picker" { // which may be a slot's key too
			methods = "GET, HEAD, PUT, DELETE"
		}
		w.Header().Set("Allow", methods)
		return "other", 0, nil, errNotAllowed
	default:
		return "other", 0, nil, errNoThemeEndpoint
	}
	visitor, member, err := site.Staff.Member(ctx, r, address)
	if err == nil && !member.Permissions.ManageManifests {
		err = errNotEditor
	}
	if err != nil {
		return operation, 0, nil, err
	}
	end, err := site.Begin()
	if err != nil {
		return operation, 0, nil, err
	}
	defer end()
	home, err := site.Homepage(ctx, visitor)
	if err != nil {
		return operation, 0, nil, err
	}
	a := curationRequest{site, home, h.Path}
	switch operation {
	case "show":
		answer, err = a.show(ctx)
		return operation, http.StatusOK, answer, err
	case "pick":
		answer, err = a.pick(ctx, keys[0], r.URL.Query())
		return operation, http.StatusOK, answer, err
	}
	status, answer, err = a.fill(ctx, keys[0], keys[1], r.Method == http.MethodPut, http.MaxBytesReader(w, r.Body, maxChoice))
	return operation, status, answer, err
}

// maxChoice bounds the body of a choice, in bytes.
const maxChoice = 16 << 10

// curationRequest is a request of somebody who may make it.
type curationRequest struct {
	site  *CurationSite
	home  ActiveHomepage
	admin string // the path of the platform's admin
}

func (a curationRequest) show(ctx context.Context) (any, error) {
	var slots []manifest.Slot
	for _, section := range a.home.Declared.Sections {
		slots = append(slots, section.Slots...)
	}
	shown, err := a.home.Show(ctx, slots)
	if err != nil {
		return nil, a.failed(err)
	}
	answer := homepageAnswer{a.home.Theme, a.home.IsLatest, []sectionAnswer{}}
	for _, section := range a.home.Declared.Sections {
		of := sectionAnswer{section.Key, section.Name, section.Description, section.Picker, nil}
		for range section.Slots {
			of.Slots = append(of.Slots, a.slot(shown[0]))
			shown = shown[1:]
		}
		answer.Sections = append(answer.Sections, of)
	}
	return answer, nil
}

// errors of the curation API.
var (
	errNoSection = &statusError{http.StatusNotFound, NotFound, "The active theme has no such section. Load the page again."}
	errNoSlot    = &statusError{http.StatusNotFound, NotFound, "The active theme has no such slot. Load the page again."}
	errNoView    = &statusError{http.StatusUnprocessableEntity, Other, "The view is recent or search."}
	errNoChoice  = &statusError{http.StatusUnprocessableEntity, Other, `Send JSON such as {"post": "5ddc9141c35e7700383b2937"}.`}
	errSwitched  = &statusError{http.StatusConflict, Rejected, "Another theme was made the active one meanwhile. Load the page again."}
)

func (a curationRequest) pick(ctx context.Context, section string, query url.Values) (any, error) {
	of, ok := a.home.Section(section)
	if !ok {
		return nil, errNoSection
	}
	view := query.Get("view")
	if view == "" {
		view = of.Picker.DefaultView
	}
	var found []platform.Post
	var err error
	switch view {
	case manifest.RecentView:
		found, err = a.home.Recent(ctx, of)
	case manifest.SearchView:
		found, err = a.home.Search(ctx, of, query.Get("q"))
	default:
		return nil, errNoView
	}
	if err != nil {
		return nil, a.failed(err)
	}
	return struct {
		View  string       `json:"view"`
		Posts []postAnswer `json:"posts"`
	}{view, a.posts(found)}, nil
}

// choice is the body of a request to fill a slot.
type choice struct {
	Post    string `json:"post"`
	FromAll bool   `json:"from_all"` // though readers see the tag, and several posts carry it
	Theme   string `json:"theme"`    // that was active when the choice was made, "" if that does not matter
}

func (a curationRequest) fill(ctx context.Context, section, slot string, hasPost bool, body io.Reader) (status int, answer any, err error) {
	var c choice
	text, err := io.ReadAll(body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return 0, nil, errTooLarge
	}
	if err != nil || (hasPost || len(text) > 0) && unmarshal(text, &c) != nil || hasPost != (c.Post != "") {
		return 0, nil, errNoChoice
	}
	if c.Theme != "" && c.Theme != a.home.Theme {
		return 0, nil, errSwitched
	}
	_, of, ok := a.home.Find(section, slot)
	if !ok {
		return 0, nil, errNoSlot
	}
	err = a.home.Fill(ctx, of, c.Post, c.FromAll)
	isPending := errors.Is(err, curation.ErrPending)
	if err != nil && !isPending {
		return 0, nil, a.failed(err)
	}
	shown, err := a.home.Show(ctx, []manifest.Slot{of})
	if err != nil { // which changes nothing of what was done
		shown = []curation.Slot{{Slot: of}}
	}
	if isPending {
		return http.StatusAccepted, a.slot(shown[0]), nil
	}
	return http.StatusOK, a.slot(shown[0]), nil
}

// failed returns the error of a homepage that cannot be shown, or filled.
func (a curationRequest) failed(err error) error {
	if errors.Is(err, curation.ErrPlatform) {
		return unanswered(a.site.Kind.Title, err)
	}
	return err
}

func (a curationRequest) slot(s curation.Slot) slotAnswer {
	answer := slotAnswer{Slot: s.Slot, Posts: a.posts(s.Posts), Total: s.Total}
	if m := s.Move; m != nil {
		answer.Pending = &pendingAnswer{Since: timestamp(m.WantedAt), Problem: m.Problem}
		if m.Post != "" {
			answer.Pending.Post = &m.Post
		}
	}
	return answer
}

func (a curationRequest) posts(list []platform.Post) []postAnswer {
	answers := []postAnswer{}
	for _, p := range list {
		answer := postAnswer{ID: p.ID, Title: p.Title, Status: p.Status, Authors: append([]string{}, p.Authors...), Edit: a.admin + p.Edit}
		if p.Picture != "" {
			answer.Picture = &p.Picture
		}
		if !p.PublishedAt.IsZero() {
			answer.PublishedAt = new(timestamp(p.PublishedAt))
		}
		answers = append(answers, answer)
	}
	return answers
}
