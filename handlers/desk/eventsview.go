package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// eventsPage is what the page of events shows: a list, the editor of one, or a question
// before something is done to it.
type eventsPage struct {
	Notice   *notice
	List     *eventList
	Editor   *eventEditor
	Question *eventQuestion
	Series   *seriesQuestion
}

// eventList is a page of the list of events.
type eventList struct {
	Filter   eventFilter
	Tabs     []eventTab
	Types    []choice
	Months   []choice
	Month    *shownMonth  // nil on the other tabs
	Series   *shownSeries // nil for all events
	Events   []listedEvent
	Total    int
	Next     string // the address of the next page, "" for none
	Theme    string
	HasTypes bool
	IsSeen   bool // whether the theme's manifest was ever read
	HasMore  bool // this is not the first page

	// Findings are why there are no types, and More how many are not shown.
	Findings []manifest.Finding
	More     int

	Zone        string // of the dates
	IsZoneKnown bool   // it is the site's
}

// eventFilter is what an address says about which events are listed.
type eventFilter struct {
	View, Type, Month, Query string // View is one of eventViews, and Month as 2026-05
	From                     string // the tab on which words were typed
	Series                   string // the ID of one of its events, "" for all events
}

// eventTab is a tab of the list, with how many events it has.
type eventTab struct {
	choice
	Address string
	Count   int
	IsList  bool // it has a count
}

// shownMonth is a month, in weeks that begin on a Monday.
type shownMonth struct {
	Name           string
	Before, Behind monthLink
	Weeks          [][]shownDay
	More           int    // events that are not shown
	List           string // the address of the list of them
}

// monthLink leads to a month nearby.
type monthLink struct{ Name, Address string }

type shownDay struct {
	Date    string // 2026-05-04
	Name    string // Monday, 4 May
	Number  int
	IsOther bool // it is of the month before or behind
	IsToday bool
	Events  []dayEvent
}

// dayEvent is an event on a day.
type dayEvent struct {
	ID, Name, Status string
	Time             string // of its start, "" on the days after that one, and for a whole day
}

// listedEvent is an event in the list.
type listedEvent struct {
	ID, Name, When, Type, Status string

	There string // when it is in its own time zone, "" if that is no other

	Pending    *shownPending
	Post       string    // what is not as it should be with its post, see postOf
	View, Text string    // addresses of its page and of its text, "" for none
	Preview    string    // the address of the preview of a post that is not published, "" for none
	PublishAt  time.Time // of a scheduled post, zero for others
	Missing    string    // why the event of a post that is published cannot be published, "" for nothing

	Guests *shownPlaces // nil if it takes no registrations and has none
}

// shownPlaces is how many are registered for an event, and wait.
type shownPlaces struct {
	Registered int
	Most       int // 0 for any number
	Waiting    int
}

// shownPending is why the platform does not have an event as it is here.
type shownPending struct {
	Since     time.Time
	Problem   string
	IsSending bool // it is on its way now
}

// eventEditor is the editor of an event.
type eventEditor struct {
	ID, Name string // ID is "" for a new one
	Theme    string // the active one
	Type     string // "" if there is none for the event
	Types    []choice
	Fields   []eventField
	Columns  []fieldColumn // of the fields
	Kept     string        // values that the type has no fields for, as JSON
	Revision int64
	Status   string
	Platform string

	Problems []eventField       // those that have one
	Others   []manifest.Problem // of no field that is shown
	Findings []manifest.Finding
	More     int

	Pending    *shownPending
	Post       string             // see postOf
	Card       string             // what became of the card in its text, see events.Card
	View, Text string             // addresses of its page and of its text, "" for none
	Preview    string             // the address of the preview of a post that is not published, "" for none
	PublishAt  time.Time          // of a scheduled post, zero for others
	Missing    []manifest.Problem // why it cannot be published, of a draft that has a post
	Guests     *shownPlaces
	Series     int // how many events its series has, 0 for none
	History    []shownDeed
	Elsewhere  string // the theme that the event was made for, if that is another

	Conflict *conflict
	Gone     []shownValue // what the event has, if its type is gone
	GoneType string

	IsSaved   bool   // what is shown is what is kept
	Once      string // names the form of a new event, should it be sent twice
	Upload    string // where pictures are sent
	PostTitle string // of the type's template
	Owner     string // a name for who edits it, and the site, for what a browser keeps
}

// conflict is that somebody else has changed an event meanwhile.
type conflict struct {
	Revision int64 // theirs
	Theirs   []shownValue
}

// shownValue is a value that is only read.
type shownValue struct{ Label, Value string }

// eventQuestion is what is asked before something is done to an event.
type eventQuestion struct {
	ID, Name string
	Revision int64
	Do       string // what the form says
	Title    string
	Text     string
	Button   string
	Guests   string // what those who are registered learn, "" if nobody is
	IsSafe   bool   // nothing is taken away
	Copy     *eventCopy

	GuestLinks []link // to those who are registered
}

// eventsView is what the pages of events know of their site.
type eventsView struct {
	*view

	theme    string           // the active one
	declared *manifest.Events // its event types, nil for none
	isSeen   bool             // whether its manifest was ever read
	findings []manifest.Finding
}

// eventsView asks the platform which theme is active.
func (v *view) eventsView(ctx context.Context) (*eventsView, error) {
	theme, err := v.site.Active(ctx, v.visitor)
	if err != nil {
		return nil, err
	}
	declared, findings, err := v.site.Events.Declared(ctx, theme)
	isSeen := declared != nil
	if err == nil && !isSeen {
		isSeen, err = v.site.HasRead(ctx, theme)
	}
	return &eventsView{v, theme, declared, isSeen, findings}, away(err)
}

func (r *eventsView) find(ctx context.Context, id string) (events.Event, error) {
	e, err := r.events.Find(ctx, r.site.Name, id)
	return e, r.explain(err)
}

// labelOf is the name of a type, or its key if the active theme has no such type.
func (r *eventsView) labelOf(key string) string {
	if t, ok := r.declared.Type(key); ok {
		key = t.Label
	}
	return clip.Text(key, maxLabel)
}

// current takes over what staff changed in the platform. If that does not respond, events
// are shown as they are stored.
func (r *eventsView) current(ctx context.Context, list []events.Event) []events.Event {
	refreshed, err := r.events.Posts.Refresh(ctx, r.site.Name, list)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			r.desk.Logger.Warn("cannot poll posts of events", zap.String("site", r.site.Name), zap.Error(err))
		}
		return list
	}
	return refreshed
}

// addressesOf says where an event's page, the preview of it and its text are, "" for none.
func (r *eventsView) addressesOf(e events.Event) (view, preview, text string) {
	if e.Post.ID == "" || e.Post.IsLost {
		return "", "", ""
	}
	switch {
	case e.Status != events.Draft && e.Post.Status == platform.Published:
		view = e.Post.URL
	case e.Post.Status == platform.Draft || e.Post.Status == platform.Scheduled:
		preview = e.Post.URL
	}
	return view, preview, r.desk.Path + e.Post.Edit
}

// missing says why a draft that has a post cannot be published.
func (r *eventsView) missing(e events.Event) (list []manifest.Problem) {
	if e.Status != events.Draft || e.Post.ID == "" {
		return nil
	}
	t, _ := events.NewType(r.declared, e.Type)
	for _, p := range r.events.Problems(e, t) {
		list = append(list, clipped(p))
	}
	return list
}

func clipped(p manifest.Problem) manifest.Problem {
	return manifest.Problem{Field: p.Field, Message: clip.Text(p.Message, maxMessage)}
}

// postOf says what is wrong with the post of an event, and what the pages say about it. It is
// "lost" if it was deleted, "out" if it is published and the event is not, and "sent" if it was
// sent by email only and so has no page.
func postOf(e events.Event) string {
	switch {
	case e.Post.IsLost:
		return "lost"
	case e.Pending != nil:
		return ""
	case e.Status == events.Draft && e.Post.Status == platform.Published:
		return "out"
	case e.Post.Status == platform.Sent:
		return "sent"
	}
	return ""
}

func (r *eventsView) pendingOf(e events.Event) *shownPending {
	if e.Pending == nil {
		return nil
	}
	return &shownPending{e.Pending.Since, clip.Text(e.Pending.Problem, maxMessage), !r.visitor.IsRecalled && r.events.IsSending(e)}
}

func nameOf(values map[string]any) string {
	if name := strings.TrimSpace(textOfValue(values["name"])); name != "" {
		return clip.Text(name, maxTitle)
	}
	return "Without a name"
}

// eventDone reads from the query what was just done, nil for nothing.
func (v *view) eventDone(id string) *notice {
	done := v.request.URL.Query().Get("done")
	text, ok := eventsDone[done]
	switch {
	case !v.isOwnLink():
		return nil
	case done == publishSeries:
		return seriesSaid(v.site.Kind.Title, v.count("ready"), v.count("unready"), v.count("left"))
	case !ok || isOfList[done] != (id == ""):
		return nil
	case done == "copies":
		return copiesSaid(v.count("made"), v.count("skipped"))
	case done == "delete" && v.count("registered") > 0:
		text += " " + guestsOf(v.count("registered"), "was registered", "were registered") + ", and got no mail."
	}
	return &notice{Text: strings.ReplaceAll(text, "%s", v.site.Kind.Title)}
}

// toldOf is what was done to an event, how far it is, and what those who are registered for it learn of it.
// It was done also if nobody can count them now.
func (r *eventsView) toldOf(ctx context.Context, e events.Event, done string) *notice {
	text := eventsDone[done]
	if later, ok := eventsDoneLater[done]; ok && e.Pending != nil {
		text = later
	}
	said := &notice{Text: strings.ReplaceAll(text, "%s", r.site.Kind.Title)}
	if _, ok := guestsLearn[done]; !ok {
		return said
	}
	if done == "move" || done == "publish-moved" {
		said.Text += deadlineOf(e, r.events.Now())
	}
	if learn, err := r.guestsLearn(ctx, e, done); err == nil && learn != "" {
		said.Text += " " + learn
		said.More = r.guestLinks(e)
	}
	return said
}

// guestsLearn says how many are registered for an event, and what they learn of what was done, or is about to be; "" if nobody is.
func (r *eventsView) guestsLearn(ctx context.Context, e events.Event, do string) (string, error) {
	n, err := r.registered(ctx, e)
	if n == 0 || err != nil {
		return "", err
	}
	said, mailed := guestsOf(n, "is registered", "are registered"), 0
	rest, isMailed := guestsLearnToo[do]
	if isMailed && r.site.Events.SendsMail && !e.Terms().IsOver(r.events.Now()) {
		guests, err := r.guests()
		if err == nil {
			mailed, _, err = guests.Mailed(ctx, r.site.Name, e.ID)
		}
		if err != nil {
			return "", away(err)
		}
	}
	if mailed == 0 {
		return said + guestsLearn[do], nil
	}
	said += ". " + guestsOf(mailed, "is told", "are told") + " by mail, five minutes later."
	if alone := n - mailed; alone > 0 {
		said += " " + guestsOf(alone, "has", "have") + " no email: tell them."
	}
	return said + rest, nil
}

// guestLinks lead to those who are registered for an event: to the guest list, and to where staff can write to them.
func (r *eventsView) guestLinks(e events.Event) []link {
	links := []link{{Title: "Guest list", Address: "guest-list?event=" + e.ID}}
	if len(e.RegistrantLabels()) > 0 {
		links = append(links, link{Title: "Members in " + r.site.Kind.Title, Address: "events?event=" + e.ID + "&members="})
	}
	return links
}

// members leads to the members who have the first label of an event, in the platform's admin. Without one, or while the platform does not
// answer, it leads to the guest list.
func (r *eventsView) members(ctx context.Context, id string) (any, error) {
	e, err := r.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if labels := e.RegistrantLabels(); len(labels) > 0 {
		if page, err := r.site.Events.Host.MembersPage(ctx, labels[0]); err == nil && page != "" {
			return adminPath(page), nil
		}
	}
	return adminPath(Path + "/guest-list?event=" + e.ID), nil
}

// registered is how many are registered for an event.
func (r *eventsView) registered(ctx context.Context, e events.Event) (int, error) {
	places, err := r.places(ctx, e)
	if err != nil || places[0] == nil {
		return 0, err
	}
	return places[0].Registered, nil
}

func guestsOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

const moveLearned = ". Nobody gets a mail. The event's page and subscribed calendars have the new date and place. Tell them."

// guestsLearn is what those who are registered for an event learn of what was done, or is about to be, where nobody gets a mail.
var guestsLearn = map[string]string{
	"move":          moveLearned,
	"publish-moved": moveLearned,
	"unpublish":     ". Nobody gets a mail, and the event's page is gone. Tell them. They stay registered if it is published again.",
	"cancel":        ". Nobody gets a mail. Only the event's page and subscribed calendars say so. Tell them.",
}

const movedToo = " The event's page and subscribed calendars have the new date and place."

// guestsLearnToo is what follows for those who get a mail of it.
var guestsLearnToo = map[string]string{
	"move":          movedToo,
	"publish-moved": movedToo,
	"cancel":        " The event's page and subscribed calendars say so too.",
}

// eventsDoneLater is what was done, in words, while the platform does not have it yet.
var eventsDoneLater = map[string]string{
	"publish":       "The event is published. Readers find it as soon as %s has its post.",
	"publish-moved": "The event is published again, with another date or place. Its page has them as soon as %s has it.",
	"unpublish":     "The event is not published any more. Its post becomes a draft in %s, with its text.",
	"cancel":        "The event is cancelled. Its page stays, and says so as soon as %s has it.",
	"card":          "The text of the post has date and place of the event again, as soon as %s has it.",
	"move":          "The event was saved, with another date or place. Its page has them as soon as %s has it.",
}

// isOwnLink reports whether a page of the desk led here, and not a link of somebody's, which could
// say that something was done.
func (v *view) isOwnLink() bool {
	site := v.request.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}

// isOfList has what is said on the list once it was done.
var isOfList = map[string]bool{"delete": true, "copies": true}

// eventsDone are what was done, in words.
var eventsDone = map[string]string{
	"save":          "The event was saved.",
	"move":          "The event was saved, with another date or place.",
	"write":         "The event was saved. Its post is made as soon as %s responds. Then you can write its text there.",
	"publish":       "The event is published.",
	"publish-moved": "The event is published again, with another date or place.",
	"unpublish":     "The event is not published any more. Its post is a draft in %s, with its text.",
	"cancel":        "The event is cancelled. Its page stays, and says so.",
	"card":          "The text of the post has date and place of the event again.",
	"delete":        "The event was deleted. Its post, if it had one, stays in %s as a draft.",
	"duplicate":     "This is the copy, a draft without slug and date.",
	"copy":          "This is the copy, a draft.",
	"copies":        "", // copiesSaid says how many
}
