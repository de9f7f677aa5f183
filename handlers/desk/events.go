package desk

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// eventsPage is what the page of events shows: a list, the editor of one, or a question
// before something is done to it.
type eventsPage struct {
	Notice   *notice
	List     *eventList
	Editor   *eventEditor
	Question *eventQuestion
}

// eventRoom is what the pages of events know of their site.
type eventRoom struct {
	*visit
	service *events.Service

	theme    string           // the active one
	declared *manifest.Events // its event types, nil for none
	findings []manifest.Finding
}

// eventRoom returns what is known of the site, of which the active theme is asked for.
func (v *visit) eventRoom(ctx context.Context) (*eventRoom, error) {
	service, err := v.site.Events.Events()
	if err != nil {
		return nil, away(err)
	}
	room := &eventRoom{visit: v, service: service}
	if room.theme, err = v.site.Active(ctx, v.visitor); err != nil {
		return nil, err
	}
	room.declared, room.findings, err = v.site.Events.Declared(ctx, room.theme)
	return room, away(err)
}

// labelOf returns the name of a type, its key if the active theme has no such type.
func (r *eventRoom) labelOf(key string) string {
	if t, ok := r.declared.Type(key); ok {
		key = t.Label
	}
	return clip.Text(key, maxLabel)
}

// eventList is a page of the list of events.
type eventList struct {
	View     string // of views
	Views    []choice
	Query    string
	Events   []listedEvent
	Total    int
	Next     string // the address of the next page, "" for none
	Theme    string
	HasTypes bool
	HasMore  bool // this is not the first page
}

// listedEvent is an event in the list.
type listedEvent struct {
	ID, Name, When, Type, Status string

	Pending    *shownPending
	Post       string // what is not as it should be with its post, see postOf
	View, Text string // addresses of its page and of its text, "" for none
}

// shownPending is why the platform does not have an event as it is here.
type shownPending struct {
	Since   time.Time
	Problem string
}

// eventViews are the parts of the list.
var eventViews = []choice{
	{Value: string(events.Upcoming), Label: "Upcoming"}, {Value: string(events.Past), Label: "Past"}, {Value: string(events.Drafts), Label: "Drafts"},
}

// maxListedEvents is how many events a page of the list has.
const maxListedEvents = 25

// showEvents shows the list, the editor of an event, or a question about one.
func showEvents(ctx context.Context, v *visit) (any, error) {
	room, err := v.eventRoom(ctx)
	if err != nil {
		return nil, err
	}
	query := v.request.URL.Query()
	switch id := query.Get("event"); {
	case id != "" && query.Has("confirm"):
		return room.ask(ctx, id, query.Get("confirm"))
	case id != "":
		return room.edit(ctx, id, query.Get("type"))
	case query.Has("new"):
		return room.editNew(ctx, query.Get("new"))
	}
	return room.list(ctx)
}

// list shows a page of the list.
func (r *eventRoom) list(ctx context.Context) (any, error) {
	query := r.request.URL.Query()
	shown := &eventList{View: query.Get("view"), Query: clip.Text(query.Get("q"), maxTitle), Theme: clip.Text(r.theme, maxLabel), HasTypes: r.declared != nil, HasMore: query.Get("after") != ""}
	search := events.Query{Text: shown.Query, After: query.Get("after"), Most: maxListedEvents}
	if shown.View != string(events.Past) && shown.View != string(events.Drafts) {
		shown.View = string(events.Upcoming)
	}
	search.View = events.View(shown.View)
	for _, view := range eventViews {
		view.IsChosen = view.Value == shown.View
		shown.Views = append(shown.Views, view)
	}
	page, err := r.service.List(ctx, r.site.Name, search)
	if err != nil {
		return nil, away(err)
	}
	shown.Total = page.Total
	for _, e := range r.look(ctx, page.Events) {
		shown.Events = append(shown.Events, r.listed(e))
	}
	if page.Next != "" {
		shown.Next = "events?" + url.Values{"view": {shown.View}, "q": {shown.Query}, "after": {page.Next}}.Encode()
	}
	return eventsPage{List: shown, Notice: r.eventDone("")}, nil
}

// look takes over what staff changed in the platform. Without an answer of it, events are
// shown as they are known.
func (r *eventRoom) look(ctx context.Context, list []events.Event) []events.Event {
	looked, err := r.service.Look(ctx, r.site.Name, list)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			r.desk.Logger.Warn("the posts of events could not be looked at", zap.String("site", r.site.Name), zap.Error(err))
		}
		return list
	}
	return looked
}

func (r *eventRoom) listed(e events.Event) listedEvent {
	shown := listedEvent{ID: e.ID, Name: nameOf(e.Values), When: dateOf(e.Values), Type: r.labelOf(e.Type), Status: string(e.Status), Post: postOf(e), Pending: pendingOf(e)}
	if shown.When == "" {
		shown.When = "No date"
	}
	shown.View, shown.Text = r.addressesOf(e)
	return shown
}

// addressesOf returns where an event's page and its text are, "" for none.
func (r *eventRoom) addressesOf(e events.Event) (view, text string) {
	if e.Post.ID == "" || e.Post.IsLost {
		return "", ""
	}
	if e.Status != events.Draft && e.Post.Status == platform.Published {
		view = e.Post.URL
	}
	return view, r.desk.Path + e.Post.Edit
}

// postOf returns what is not as it should be with the post of an event, and what the pages
// say about it: "lost" if it was deleted, "out" if it is published and the event is not, "sent"
// if it was sent by email only and so has no page, "" otherwise.
func postOf(e events.Event) string {
	switch {
	case e.Post.IsLost:
		return "lost"
	case e.Pending != nil:
		return ""
	case e.Status == events.Draft && e.Post.Status == platform.Published:
		return "out"
	case e.Status != events.Draft && e.Post.Status == platform.Sent:
		return "sent"
	}
	return ""
}

func pendingOf(e events.Event) *shownPending {
	if e.Pending == nil {
		return nil
	}
	return &shownPending{e.Pending.Since, clip.Text(e.Pending.Problem, maxMessage)}
}

// nameOf returns how an event is called.
func nameOf(values map[string]any) string {
	if name := strings.TrimSpace(textOfValue(values["name"])); name != "" {
		return clip.Text(name, maxTitle)
	}
	return "Without a name"
}

// dateOf returns when an event is, "" without a date.
func dateOf(values map[string]any) string {
	text := textOfValue(values["event_date"])
	if date, err := time.Parse(time.DateOnly, text); err == nil {
		text = date.Format("2 Jan 2006")
	}
	if text = clip.Text(text, maxLabel); text == "" {
		return ""
	}
	if start := textOfValue(values["event_time_start"]); start != "" {
		text += ", " + clip.Text(start, maxLabel)
		if end := textOfValue(values["event_time_end"]); end != "" {
			text += "–" + clip.Text(end, maxLabel)
		}
		if zone := textOfValue(values["event_time_zone"]); zone != "" {
			text += " " + clip.Text(zone, maxLabel)
		}
	}
	return text
}

var errNoEvent = refusal(http.StatusNotFound, "There is no such event any more. Go back to Events.")

// find returns an event.
func (r *eventRoom) find(ctx context.Context, id string) (events.Event, error) {
	e, err := r.service.Find(ctx, r.site.Name, id)
	return e, r.explain(err)
}

// done returns what the query says was just done, nil for nothing.
func (v *visit) eventDone(id string) *notice {
	query := v.request.URL.Query()
	if site := v.request.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" { // a link of somebody's
		return nil
	}
	text, ok := eventsDone[query.Get("done")]
	if !ok || (query.Get("done") == "delete") != (id == "") {
		return nil
	}
	return &notice{Text: strings.ReplaceAll(text, "%s", v.site.Kind.Title)}
}

// eventsDone are what was done, in words.
var eventsDone = map[string]string{
	"save":      "The event was saved.",
	"publish":   "The event is published.",
	"unpublish": "The event is not published any more. Its post is a draft in %s, with its text.",
	"cancel":    "The event is cancelled. Its page stays, and says so.",
	"delete":    "The event was deleted. Its post, if it had one, stays in %s as a draft.",
	"duplicate": "This is the copy, a draft without slug and date.",
}
