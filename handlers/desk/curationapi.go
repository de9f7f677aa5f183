package desk

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
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

// CurationPath is where, behind the path of the platform's admin, the API is.
const CurationPath = "/lychgate/curation"

// These are the responses. Each has its lists, empty ones too.
type (
	homepageResponse struct {
		Theme    string            `json:"theme"`
		IsLatest bool              `json:"is_latest"`
		Sections []sectionResponse `json:"sections"`
	}

	sectionResponse struct {
		Key         string          `json:"key"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Picker      manifest.Picker `json:"picker"`
		Slots       []slotResponse  `json:"slots"`
	}

	slotResponse struct {
		manifest.Slot
		Posts   []postResponse   `json:"posts"`
		Total   int              `json:"total"`   // of the posts that carry the tag
		Pending *pendingResponse `json:"pending"` // null unless the platform does not have it yet
	}

	pendingResponse struct {
		Post    *string `json:"post"` // null for none
		Since   string  `json:"since"`
		Problem string  `json:"problem"`
	}

	postResponse struct {
		ID          string   `json:"id"`
		Title       string   `json:"title"`
		Status      string   `json:"status"`
		Picture     *string  `json:"picture"`
		Authors     []string `json:"authors"`
		PublishedAt *string  `json:"published_at"`
		UpdatedAt   *string  `json:"updated_at"`
		Edit        string   `json:"edit"` // the path of its editor
	}
)

// Serve answers a request below CurationPath from an address, for a site or for no site if
// that is nil. Operations are show, pick, fill, clear, show_slot_history and other.
func (h *CurationAPI) Serve(w http.ResponseWriter, r *http.Request, site *CurationSite, address netip.Addr) api.Served {
	routes, keys := h.find(r)
	staff := api.StaffAPI[*curationRequest]{
		Platforms: h.Platforms, Subject: "the homepage", MaxBody: maxChoice, Logger: h.Logger,
		Prepare: func(ctx context.Context, r *api.StaffRequest) (*curationRequest, error) {
			home, err := site.Homepage(ctx, r.Visitor, r.Member)
			return &curationRequest{r, site, home, h.Path, keys}, err
		},
	}
	var of *api.Site
	if site != nil {
		of = site.Site
	}
	served, _ := staff.Serve(w, r, of, address, routes)
	return served
}

var (
	showRoutes = []api.Route[*curationRequest]{{Operation: "show", Method: http.MethodGet, Do: (*curationRequest).show}}
	slotRoutes = []api.Route[*curationRequest]{
		{Operation: "fill", Method: http.MethodPut, Do: (*curationRequest).fill, IsQueued: true},
		{Operation: "clear", Method: http.MethodDelete, Do: (*curationRequest).fill, IsQueued: true},
	}
	historyRoutes = []api.Route[*curationRequest]{{Operation: "show_slot_history", Method: http.MethodGet, Do: (*curationRequest).history}}

	// A slot's key may be picker, too.
	pickerRoutes = slices.Concat([]api.Route[*curationRequest]{{Operation: "pick", Method: http.MethodGet, Do: (*curationRequest).pick}}, slotRoutes)
)

// find splits the path of a request into keys: of a section and of a slot.
func (h *CurationAPI) find(r *http.Request) (routes []api.Route[*curationRequest], keys []string) {
	rest := strings.Trim(strings.TrimPrefix(r.URL.EscapedPath(), h.Path+CurationPath), "/")
	if rest == "" {
		return showRoutes, nil
	}
	for key := range strings.SplitSeq(rest, "/") {
		plain, err := url.PathUnescape(key)
		if err != nil {
			return nil, nil
		}
		keys = append(keys, plain)
	}
	switch {
	case len(keys) == 3 && keys[2] == "history":
		return historyRoutes, keys
	case len(keys) != 2:
		return nil, nil
	case keys[1] == "picker":
		return pickerRoutes, keys
	}
	return slotRoutes, keys
}

// maxChoice bounds the body of a choice, in bytes.
const maxChoice = 16 << 10

// curationRequest is a request of somebody who may make it.
type curationRequest struct {
	*api.StaffRequest

	site  *CurationSite
	home  ActiveHomepage
	admin string   // the path of the platform's admin
	keys  []string // see [CurationAPI.find]
}

func (a *curationRequest) show(ctx context.Context) (response api.Response, err error) {
	shown, err := a.home.Show(ctx, slotsOf(a.home))
	if err != nil {
		return response, a.failed(err)
	}
	homepage := homepageResponse{a.home.Theme, a.home.IsLatest, []sectionResponse{}}
	for _, section := range a.home.Declared.Sections {
		of := sectionResponse{section.Key, section.Name, section.Description, section.Picker, nil}
		for range section.Slots {
			of.Slots = append(of.Slots, a.slot(shown[0]))
			shown = shown[1:]
		}
		homepage.Sections = append(homepage.Sections, of)
	}
	return api.Response{Body: homepage}, nil
}

// Errors of the curation API.
var (
	errUnknownSection = &api.Error{Status: http.StatusNotFound, Outcome: api.NotFound, Message: "The active theme has no such section. Load the page again."}
	errUnknownSlot    = &api.Error{Status: http.StatusNotFound, Outcome: api.NotFound, Message: "The active theme has no such slot. Load the page again."}
	errNoView         = api.Invalid("The view is recent or search.")
	errNoChoice       = api.Invalid(`Send JSON such as {"post": "5ddc9141c35e7700383b2937"}.`)
	errSwitched       = &api.Error{Status: http.StatusConflict, Outcome: api.Rejected, Message: "Another theme was made the active one meanwhile. Load the page again."}
)

func (a *curationRequest) pick(ctx context.Context) (response api.Response, err error) {
	of, ok := a.home.Section(a.keys[0])
	if !ok {
		return response, errUnknownSection
	}
	query := a.URL.Query()
	view := query.Get("view")
	if view == "" {
		view = of.Picker.DefaultView
	}
	var found []platform.Post
	hasMore := false
	switch view {
	case manifest.RecentView:
		found, err = a.home.Recent(ctx, of, query.Get("events") != withoutEvents)
	case manifest.SearchView:
		most, _ := strconv.Atoi(query.Get("most"))
		found, hasMore, err = a.home.Search(ctx, of, query.Get("q"), most)
	default:
		return response, errNoView
	}
	if err != nil {
		return response, a.failed(err)
	}
	response.Body = struct {
		View    string         `json:"view"`
		Posts   []postResponse `json:"posts"`
		HasMore bool           `json:"has_more"`
	}{view, a.posts(found), hasMore}
	return response, nil
}

// slotChoice is the body of a request to fill a slot.
type slotChoice struct {
	Post    string `json:"post"`
	FromAll bool   `json:"from_all"` // though readers see the tag, and several posts carry it
	Theme   string `json:"theme"`    // that was active when the choice was made, "" if that does not matter
}

// choice reads the body, which may be empty when a slot is cleared.
func (a *curationRequest) choice() (c slotChoice, err error) {
	text, err := a.ReadBody()
	if errors.Is(err, api.ErrTooLarge) {
		return c, err
	}
	hasPost := a.Method == http.MethodPut
	if err != nil || (hasPost || len(text) > 0) && api.Unmarshal(text, &c) != nil || hasPost != (c.Post != "") {
		return c, errNoChoice
	}
	return c, nil
}

// fill fills a slot, or clears it.
func (a *curationRequest) fill(ctx context.Context) (response api.Response, err error) {
	c, err := a.choice()
	if err != nil {
		return response, err
	}
	if c.Theme != "" && c.Theme != a.home.Theme {
		return response, errSwitched
	}
	_, of, ok := a.home.Find(a.keys[0], a.keys[1])
	if !ok {
		return response, errUnknownSlot
	}
	err = a.home.Fill(ctx, of, c.Post, c.FromAll)
	if errors.Is(err, curation.ErrPending) {
		response.Status, err = http.StatusAccepted, nil
	}
	if err != nil {
		return response, a.failed(err)
	}
	if a.Visitor.IsRecalled {
		kept, err := a.home.Kept(ctx, of)
		response.Body = a.slot(kept)
		return response, err
	}
	shown, err := a.home.Show(ctx, []manifest.Slot{of})
	if err != nil { // which changes nothing of what was done
		shown = []curation.Slot{{Slot: of}}
	}
	response.Body = a.slot(shown[0])
	return response, nil
}

// history is who filled the slot, and who cleared it.
func (a *curationRequest) history(ctx context.Context) (response api.Response, err error) {
	_, of, ok := a.home.Find(a.keys[0], a.keys[1])
	if !ok {
		return response, errUnknownSlot
	}
	entries, err := a.home.Curator.HistoryOf(ctx, a.home.Site, of.Tag)
	response.Body = api.NewHistoryResponse(entries)
	return response, err
}

func (a *curationRequest) failed(err error) error {
	if errors.Is(err, curation.ErrPlatform) {
		return a.site.Unanswered(err)
	}
	return err
}

func (a *curationRequest) slot(s curation.Slot) slotResponse {
	response := slotResponse{Slot: s.Slot, Posts: a.posts(s.Posts), Total: s.Total}
	if m := s.Move; m != nil {
		response.Pending = &pendingResponse{Post: api.TextOrNull(m.Post), Since: api.Time(m.WantedAt), Problem: m.Problem}
	}
	return response
}

func (a *curationRequest) posts(list []platform.Post) []postResponse {
	responses := []postResponse{}
	for _, p := range list {
		responses = append(responses, postResponse{
			ID: p.ID, Title: p.Title, Status: p.Status, Authors: append([]string{}, p.Authors...), Edit: a.admin + p.Edit,
			Picture: api.TextOrNull(p.Picture), PublishedAt: api.TimeOrNull(p.PublishedAt), UpdatedAt: api.TimeOrNull(p.UpdatedAt),
		})
	}
	return responses
}
