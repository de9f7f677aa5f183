package desk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// homepage is what the page of Homepage Curation shows: all slots, the picker of one, or
// where its post may be moved.
type homepage struct {
	Picker   *picker
	Mover    *mover
	Notice   *notice // of what was not done
	Done     *done   // of what was
	Kept     string  // the label of the slot whose choice is kept while the platform does not answer
	Theme    string
	IsLatest bool
	Platform string
	Site     string // the address of the homepage
	Sections []shownSection

	HasOthers bool // slots to move a post to
}

type shownSection struct {
	manifest.Section
	ID    string // of its heading
	Slots []shownSlot
}

type shownSlot struct {
	curation.Slot
	Value   string // its name in forms
	Address string // of its picker
	ID      string // of its element
	IsNew   bool   // it was just changed
	History []shownDeed
	Theme   string
	Posts   []shownPost
	More    int // posts that carry the tag, and are not shown
	Pending *shownMove
}

type shownMove struct {
	Since   time.Time
	Problem string
}

type shownPost struct {
	platform.Post
	Edit    string   // the address of its editor
	Picture string   // "" unless this site has it
	Fills   []string // labels of slots whose post it is, maxFills at most
	More    int      // such slots beyond these
}

// done is a change that can be undone.
type done struct {
	Label, Text  string
	Other        string            // the label of the slot that it was swapped with
	Site         string            // the address at which readers see it, "" while they do not
	Value, Theme string            // of the slot, in the form that undoes it
	Undo         map[string]string // the other fields of that
}

// showCuration shows what the slots of the active theme hold, or the picker of one.
func showCuration(ctx context.Context, v *view) (any, error) {
	home, err := v.homepage(ctx)
	if err != nil {
		return nil, err
	}
	query := v.request.URL.Query()
	switch value := query.Get("slot"); {
	case value != "" && query.Has("move"):
		m, err := v.mover(ctx, home, value)
		return homepage{Mover: m}, v.explain(err)
	case value != "":
		p, err := v.pick(ctx, home, value)
		return homepage{Picker: p}, v.explain(err)
	}
	return v.showHomepage(ctx, home, nil)
}

// homepage is the homepage that the active theme declares.
func (v *view) homepage(ctx context.Context) (ActiveHomepage, error) {
	home, err := v.site.Homepage(ctx, v.visitor, v.member)
	return home, v.explain(err)
}

// showHomepage shows all slots, and a notice, which may be nil.
func (v *view) showHomepage(ctx context.Context, home ActiveHomepage, said *notice) (any, error) {
	filled, err := home.Show(ctx, slotsOf(home))
	if err != nil {
		return nil, v.explain(err)
	}
	entries, err := home.Curator.History(ctx, home.Site)
	if err != nil {
		return nil, away(err)
	}
	page := homepage{Notice: said, Theme: home.Theme, IsLatest: home.IsLatest, Platform: v.site.Kind.Title, Site: v.desk.folder(), Sections: v.sections(home, filled)}
	for i := range page.Sections {
		for n := range page.Sections[i].Slots {
			of := &page.Sections[i].Slots[n]
			of.History = shownDeedsOf(v.site.Kind.Title, entries[manifest.TagIdentity(of.Tag)])
			of.IsNew = said == nil && of.Value == v.request.URL.Query().Get("done")
		}
	}
	page.HasOthers = len(filled) > 1
	if said == nil {
		page.Done = v.done(home)
	}
	return page, nil
}

func (v *view) sections(home ActiveHomepage, filled []curation.Slot) (list []shownSection) {
	for i, section := range home.Declared.Sections {
		section.Name, section.Description = clip.Text(section.Name, maxLabel), clip.Text(section.Description, maxMessage)
		shown := shownSection{Section: section, ID: fmt.Sprintf("section-%d", i)}
		for n, slot := range section.Slots {
			of := v.slot(home, section, slot, filled[0])
			of.ID = fmt.Sprintf("slot-%d-%d", i, n)
			shown.Slots = append(shown.Slots, of)
			filled = filled[1:]
		}
		list = append(list, shown)
	}
	return list
}

func (v *view) slot(home ActiveHomepage, section manifest.Section, slot manifest.Slot, filled curation.Slot) shownSlot {
	shown := shownSlot{
		Slot: filled, Value: slotValue(section.Key, slot.Key), Theme: home.Theme,
		Posts: v.posts(filled.Posts), More: filled.Total - len(filled.Posts),
	}
	shown.Address = "curation?" + url.Values{"slot": {shown.Value}}.Encode()
	shown.Label = clip.Text(slot.Label, maxLabel)
	if m := filled.Move; m != nil {
		shown.Pending = &shownMove{m.WantedAt, clip.Text(m.Problem, maxMessage)}
	}
	return shown
}

// slotValue names a slot in addresses and forms.
func slotValue(section, slot string) string {
	return url.PathEscape(section) + "/" + url.PathEscape(slot)
}

func (v *view) posts(list []platform.Post) []shownPost {
	shown := make([]shownPost, 0, len(list))
	for _, p := range list {
		of := shownPost{Post: p, Edit: v.desk.Path + p.Edit}
		of.Title, of.Authors = clip.Text(p.Title, maxTitle), p.Authors[:min(len(p.Authors), maxAuthors)]
		of.Picture = v.picture(p.Picture)
		shown = append(shown, of)
	}
	return shown
}

// picture is where a browser finds a small picture of a post at this site, "" if it would
// ask for anything else. Where the platform's admin has a host of its own, pictures are at another of the site's.
func (v *view) picture(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.User != nil {
		return ""
	}
	server := ""
	switch isServer := platform.IsServer(at); {
	case at.Scheme == "" && at.Host == "", isServer && at.Host == v.request.Host:
	case isServer && slices.Contains(v.site.Hosts, at.Hostname()):
		server = at.Scheme + "://" + at.Host
	default:
		return ""
	}
	root := strings.TrimSuffix(v.desk.folder(), "/")
	below := root + v.site.Kind.Pictures
	if v.site.Kind.Pictures == "" || path.Clean(at.Path) != at.Path || !strings.HasPrefix(at.Path, below) {
		return ""
	}
	whole := at.EscapedPath()
	name, ok := strings.CutPrefix(whole, below)
	if v.site.Kind.SmallPictures != "" && ok && !strings.HasPrefix(name, "size/") {
		whole = root + v.site.Kind.SmallPictures + name
	}
	if server != "" {
		v.pictures = " " + server
	}
	return server + whole
}

// done reads from the query what was just changed. It only says what a form would do
// that anybody may fill in.
func (v *view) done(home ActiveHomepage) *done {
	query := v.request.URL.Query()
	if site := v.request.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" { // a link of somebody's
		return nil
	}
	_, of, ok := home.Find(splitSlot(query.Get("done")))
	if !ok {
		return nil
	}
	d := &done{Site: v.desk.folder(), Label: clip.Text(of.Label, maxLabel), Text: "was filled", Value: query.Get("done"), Theme: home.Theme, Undo: map[string]string{"post": query.Get("was")}}
	switch {
	case query.Has("with"):
		_, other, ok := home.Find(splitSlot(query.Get("with")))
		if !ok {
			return nil
		}
		d.Text, d.Other, d.Undo = "were swapped", clip.Text(other.Label, maxLabel), map[string]string{"with": query.Get("with")}
	case query.Get("now") == "":
		d.Text = "is empty now"
	}
	if query.Has("pending") {
		d.Text, d.Other, d.Site = "is kept, and sent to "+v.site.Kind.Title+" as soon as it responds", "", ""
	}
	return d
}

func splitSlot(value string) (section, slot string) {
	first, second, _ := strings.Cut(value, "/")
	section, err := url.PathUnescape(first)
	slot, err2 := url.PathUnescape(second)
	if err != nil || err2 != nil {
		return "", ""
	}
	return section, slot
}

// picker is the page on which a post is chosen for a slot.
type picker struct {
	Section manifest.Section
	Slot    shownSlot
	View    string // recent or search
	Query   string
	Next    string // the address with more of a search, "" for none
	IsMost  bool   // there is more than can be shown

	Events    string // the address of Recent without events, or with them; "" if the site has none
	HasEvents bool   // it shows those with events
	Posts     []shownPost
	Tag       string // that limits the posts, "" for none
	Many      int    // posts from which a choice takes the tag, if readers see it
}

func (v *view) pick(ctx context.Context, home ActiveHomepage, value string) (*picker, error) {
	in, of, ok := home.Find(splitSlot(value))
	if !ok {
		return nil, errNoSlot
	}
	query := v.request.URL.Query()
	page := &picker{Section: in, View: query.Get("view"), Query: clip.Text(query.Get("q"), maxTitle)}
	if page.View != manifest.RecentView && page.View != manifest.SearchView {
		page.View = in.Picker.DefaultView
	}
	if in.Picker.RecentFilter != nil {
		page.Tag = in.Picker.RecentFilter.Tag
	}
	var found []platform.Post
	var err error
	if page.View == manifest.RecentView {
		found, err = page.recent(ctx, home, in, value, query.Get("events") != withoutEvents)
	} else {
		found, err = page.search(ctx, home, in, query)
	}
	if err != nil {
		return nil, err
	}
	slots := []manifest.Slot{of}
	if len(found) > 0 { // which may fill any slot
		slots = slotsOf(home)
	}
	filled, err := home.Show(ctx, slots)
	if err != nil {
		return nil, err
	}
	own := filled[slices.Index(slots, of)]
	page.Slot = v.slot(home, in, of, own)
	if own.Total > 1 && own.Seen {
		page.Many = own.Total
	}
	page.Posts = v.posts(found)
	markFilling(page.Posts, filled)
	return page, nil
}

// withoutEvents is what an address has of a list of recent posts without those of events.
const withoutEvents = "without"

// recent also sets the link with which an editor shows or hides posts of events.
func (p *picker) recent(ctx context.Context, home ActiveHomepage, in manifest.Section, slot string, withEvents bool) ([]platform.Post, error) {
	other := url.Values{"slot": {slot}, "view": {manifest.RecentView}}
	if withEvents {
		other.Set("events", withoutEvents)
	}
	if home.OfEvents != nil {
		p.Events, p.HasEvents = "curation?"+other.Encode(), withEvents
	}
	return home.Recent(ctx, in, withEvents)
}

// search also sets the link to more posts, until there are curation.MaxFound.
func (p *picker) search(ctx context.Context, home ActiveHomepage, in manifest.Section, query url.Values) ([]platform.Post, error) {
	most, _ := strconv.Atoi(query.Get("most")) // 0 for the first ones
	found, hasMore, err := home.Search(ctx, in, query.Get("q"), most)
	if p.IsMost = hasMore && len(found) >= curation.MaxFound; hasMore && !p.IsMost {
		p.Next = "curation?" + url.Values{
			"slot": {query.Get("slot")}, "view": {manifest.SearchView}, "q": {p.Query}, "most": {strconv.Itoa(len(found) + curation.FoundStep)},
		}.Encode()
	}
	return found, err
}

// markFilling adds to posts the slots that they fill.
func markFilling(posts []shownPost, filled []curation.Slot) {
	fills := make(map[string][]string)
	for _, slot := range filled {
		if id := first(slot.Posts); id != "" {
			fills[id] = append(fills[id], slot.Label)
		}
	}
	for i := range posts {
		labels := fills[posts[i].ID]
		posts[i].More = max(0, len(labels)-maxFills)
		for _, label := range labels[:len(labels)-posts[i].More] {
			posts[i].Fills = append(posts[i].Fills, clip.Text(label, maxLabel))
		}
	}
}

// mover is the page on which another slot is chosen, to change places with.
type mover struct {
	Slot     shownSlot
	Sections []shownSection // with all other slots
}

func (v *view) mover(ctx context.Context, home ActiveHomepage, value string) (*mover, error) {
	in, of, ok := home.Find(splitSlot(value))
	if !ok {
		return nil, errNoSlot
	}
	filled, err := home.Show(ctx, slotsOf(home))
	if err != nil {
		return nil, err
	}
	page := new(mover)
	for _, section := range v.sections(home, filled) {
		others := section.Slots[:0]
		for _, slot := range section.Slots {
			if section.Key == in.Key && slot.Key == of.Key {
				page.Slot = slot
			} else {
				others = append(others, slot)
			}
		}
		if section.Slots = others; len(others) > 0 {
			page.Sections = append(page.Sections, section)
		}
	}
	return page, nil
}

// isMove reports whether a form has a post fill a slot, or empties one: what two slots that change
// places hold, only the platform knows.
func isMove(form url.Values) bool { return form.Has("post") && !form.Has("with") }

// fillSlot does what a form says.
func fillSlot(ctx context.Context, v *view) (any, error) {
	form := v.request.PostForm
	home, err := v.homepage(ctx)
	if err != nil {
		return nil, err
	}
	if form.Get("theme") != home.Theme {
		return v.showHomepage(ctx, home, &notice{Text: "Another theme was made the active one meanwhile. These are its slots.", IsProblem: true})
	}
	_, of, ok := home.Find(splitSlot(form.Get("slot")))
	if !ok {
		return nil, errNoSlot
	}
	if v.visitor.IsRecalled {
		return v.keep(ctx, home, of)
	}
	before, err := home.Show(ctx, []manifest.Slot{of})
	if errors.Is(err, curation.ErrPlatform) && ctx.Err() == nil && isMove(form) {
		return v.keep(v.site.Staff.WithAsker(ctx, platform.Visitor{IsRecalled: true}, v.member), home, of)
	}
	if err != nil {
		return nil, v.explain(err)
	}
	query := url.Values{"done": {form.Get("slot")}}
	if form.Has("with") {
		query.Set("with", form.Get("with"))
		err = v.swap(ctx, home, before[0], form.Get("with"))
	} else {
		query.Set("was", first(before[0].Posts))
		query.Set("now", form.Get("post"))
		err = home.Fill(ctx, of, form.Get("post"), form.Has("from_all"))
	}
	if errors.Is(err, curation.ErrPending) {
		query.Set("pending", "")
		err = nil
	}
	if failure := api.FailureOf(err); err != nil && !failure.IsUnforeseen && !errors.Is(err, errNoSlot) {
		return v.showHomepage(ctx, home, &notice{Text: clip.Text(failure.Message, maxMessage), Of: clip.Text(of.Label, maxLabel), IsProblem: true})
	}
	return redirection(query.Encode()), v.explain(err)
}

// keep does what a form says of a slot while the platform does not answer, and shows no slots: what
// they hold nobody knows.
func (v *view) keep(ctx context.Context, home ActiveHomepage, of manifest.Slot) (any, error) {
	form := v.request.PostForm
	err := home.Fill(ctx, of, form.Get("post"), form.Has("from_all"))
	if !errors.Is(err, curation.ErrPending) {
		return nil, v.explain(err)
	}
	return homepage{Kept: clip.Text(of.Label, maxLabel), Platform: v.site.Kind.Title}, nil
}

// swap has two slots change places.
func (v *view) swap(ctx context.Context, home ActiveHomepage, one curation.Slot, with string) error {
	_, other, ok := home.Find(splitSlot(with))
	if !ok {
		return errNoSlot
	}
	tags := []string{one.Tag, other.Tag}
	carried, err := home.Posts.Tagged(ctx, tags, 1)
	if err != nil {
		return fmt.Errorf("%w: %w", curation.ErrPlatform, err)
	}
	for _, tag := range tags { // before one of the two is changed
		if of := carried[tag]; of.Total > 1 && !of.IsInternal {
			return &curation.ManyError{Total: of.Total}
		}
	}
	return home.Curator.Move(ctx, home.Site,
		curation.Choice{Tag: other.Tag, Post: first(one.Posts)}, curation.Choice{Tag: one.Tag, Post: first(carried[other.Tag].Posts)})
}

// The homepage shows the first of the posts that carry a slot's tag. "" means none.
func first(posts []platform.Post) string {
	if len(posts) == 0 {
		return ""
	}
	return posts[0].ID
}

var errNoSlot = refusal(http.StatusNotFound, "The active theme has no such slot. Go back to Homepage Curation.")
