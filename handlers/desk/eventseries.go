package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file asks about copies of an event, and publishes those that are a series with it.

// publishSeries is what a form says that publishes what is ready of a series.
const publishSeries = "publish-series"

// maxShownDrafts is how many drafts of a series are listed of each kind: the copies of a year, and some.
const maxShownDrafts = 60

// eventCopy is what is asked of a copy of an event.
type eventCopy struct {
	Once  string // names the form, should it be sent twice
	Most  int    // copies
	Rules []copyRule
	Date  copyField
	Until copyField
	Every string // what is wrong with the rule, "" for nothing
	Rare  string // the day that some months do not have, such as fifth Friday, "" for none
}

// copyRule is how far copies are apart.
type copyRule struct {
	choice
	First string // the date that is offered for the first copy, "" for none
}

// copyField is a date in the form, and what is wrong with it.
type copyField struct{ Value, Problem string }

// Kind is the type of its input. In one for dates a browser would show nothing of what is none.
func (f copyField) Kind() string {
	if _, err := time.Parse(time.DateOnly, f.Value); err != nil && f.Value != "" {
		return "text"
	}
	return "date"
}

// IsWrong reports whether the form has a problem.
func (c *eventCopy) IsWrong() bool { return c.Date.Problem+c.Until.Problem+c.Every != "" }

// retype puts what was typed into the form, and problems beside their fields. It returns the others.
func (c *eventCopy) retype(form url.Values, problems []manifest.Problem) (others []manifest.Problem) {
	c.Once = cmp.Or(clip.Text(form.Get("once"), maxField), c.Once)
	c.Date.Value, c.Until.Value = clip.Text(form.Get("date"), maxField), clip.Text(form.Get("until"), maxField)
	for i := range c.Rules {
		c.Rules[i].IsChosen = c.Rules[i].Value == form.Get("every")
	}
	at := map[string]*string{"date": &c.Date.Problem, "until": &c.Until.Problem, "every": &c.Every}
	for _, p := range problems {
		if field, ok := at[p.Field]; ok {
			*field = clip.Text(p.Message, maxMessage)
		} else {
			others = append(others, p)
		}
	}
	return others
}

// copyOf offers dates by that of the event.
func copyOf(e events.Event) *eventCopy {
	offered := &eventCopy{Once: rand.Text(), Most: events.MaxCopies}
	start := e.When().Start
	offer := func(of events.Rule, label string) {
		rule := copyRule{choice: choice{Value: string(of), Label: label}}
		if !start.IsZero() {
			year, month, day := start.Date()
			rule.First = of.Next(time.Date(year, month, day, 0, 0, 0, 0, time.UTC)).Format(time.DateOnly)
		}
		offered.Rules = append(offered.Rules, rule)
	}
	offer(events.Weekly, "Every week")
	offer(events.Fortnightly, "Every second week")
	offered.Date.Value = offered.Rules[0].First
	if start.IsZero() {
		return offered
	}
	week, isLast := events.WeekOf(start)
	day := [...]string{"first", "second", "third", "fourth", "fifth"}[week-1] + " " + start.Weekday().String()
	offer(events.Monthly, "Every "+day+" of a month")
	if isLast {
		offer(events.MonthlyLast, "Every last "+start.Weekday().String()+" of a month")
	}
	if week == 5 {
		offered.Rare = day
	}
	return offered
}

// shownSeries is the series of which the list has the events.
type shownSeries struct {
	ID, Name string // of one of its events
	Drafts   int
}

// series is nil if there is none.
func (r *eventsView) series(ctx context.Context, id string) (*shownSeries, error) {
	if id == "" {
		return nil, nil //nolint:nilnil // the list has all events
	}
	all, err := r.events.List(ctx, r.site.Name, events.Query{Series: id, Most: 1})
	if err != nil || all.Total == 0 {
		return nil, away(err)
	}
	drafts, err := r.events.List(ctx, r.site.Name, events.Query{Series: id, View: events.Drafts, Most: 1})
	return &shownSeries{all.Events[0].ID, nameOf(all.Events[0].Values), drafts.Total}, away(err)
}

// seriesQuestion is what is asked before the drafts of a series are published.
type seriesQuestion struct {
	ID, Name, Platform string
	Ready, Unready     []seriesDraft
	More               int // drafts that can be published and are not shown: another press is for them
	Rest               int // other drafts that are not shown
}

// seriesDraft is a draft, and the reason why it cannot be published.
type seriesDraft struct {
	ID, Name, When, Reason string
	Revision               int64
}

func draftOf(e events.Event) seriesDraft {
	shown := seriesDraft{ID: e.ID, Name: nameOf(e.Values), When: dateOf(e), Revision: e.Revision}
	if shown.When == "" {
		shown.When = "No date"
	}
	return shown
}

// typeOf is nil if the active theme has no such type.
func (r *eventsView) typeOf(_ context.Context, e events.Event) (*events.Type, error) {
	t, _ := events.NewType(r.declared, e.Type)
	return t, nil
}

// askSeries shows which drafts of the series of an event would be published, and what the others lack.
func (r *eventsView) askSeries(ctx context.Context, e events.Event, said *notice) (any, error) {
	found, err := r.events.Drafts(ctx, r.site.Name, e.ID, r.typeOf)
	if err != nil {
		return nil, r.explain(err)
	}
	shown := &seriesQuestion{ID: e.ID, Name: nameOf(e.Values), Platform: r.site.Kind.Title}
	shown.More, shown.Rest = max(0, len(found.Ready)-maxShownDrafts), found.Left+max(0, len(found.Unready)-maxShownDrafts)
	for _, of := range found.Ready[:len(found.Ready)-shown.More] {
		shown.Ready = append(shown.Ready, draftOf(of))
	}
	for _, of := range found.Unready[:min(len(found.Unready), maxShownDrafts)] {
		draft := draftOf(of.Event)
		draft.Reason = clip.Text(of.Problems[0].Message, maxMessage)
		if n := len(of.Problems) - 1; n > 0 {
			draft.Reason += fmt.Sprintf(" And %d more.", n)
		}
		shown.Unready = append(shown.Unready, draft)
	}
	return eventsPage{Series: shown, Notice: said}, nil
}

// publishSeries publishes what is ready of the drafts of a series that the form lists, as they were then, and shows what is not.
func (r *eventsView) publishSeries(ctx context.Context, form url.Values) (any, error) {
	e, err := r.find(ctx, form.Get("event"))
	if err != nil {
		return nil, err
	}
	seen := make(map[string]int64)
	for _, draft := range form["draft"] {
		id, text, _ := strings.Cut(draft, " ")
		revision, err := strconv.ParseInt(text, 10, 64)
		if err != nil || revision <= 0 {
			return nil, errForm
		}
		seen[id] = revision
	}
	done, err := r.events.PublishSeries(ctx, r.site.Name, e.ID, seen, r.typeOf)
	if err != nil {
		return nil, r.explain(err)
	}
	said := seriesSaid(r.site.Kind.Title, len(done.Ready), len(done.Unready), done.Left)
	if r.visitor.IsRecalled {
		said.Text += " " + r.site.Kind.Title + " does not answer now."
		said.More = []link{{Title: "Back to the series", Address: "events?" + url.Values{"series": {e.ID}, "view": {allTab}}.Encode()}}
		return eventsPage{Notice: said}, nil
	}
	query := url.Values{"done": {publishSeries}, "ready": {strconv.Itoa(len(done.Ready))}, "unready": {strconv.Itoa(len(done.Unready))}, "left": {strconv.Itoa(done.Left)}}
	if len(done.Unready)+done.Left > 0 {
		query.Set("event", e.ID)
		query.Set("confirm", publishSeries)
	} else {
		query.Set("series", e.ID)
		query.Set("view", allTab)
	}
	return redirection(query.Encode()), nil
}

// seriesSaid says how many drafts were published, how many lack something, and how many are left.
func seriesSaid(platform string, ready, unready, left int) *notice {
	text := fmt.Sprintf("%d events are published. Readers find each of them as soon as %s has its post.", ready, platform)
	switch ready {
	case 0:
		text = "No event was published."
	case 1:
		text = "1 event is published. Readers find it as soon as " + platform + " has its post."
	}
	switch {
	case unready == 1:
		text += " 1 draft is not ready."
	case unready > 1:
		text += fmt.Sprintf(" %d drafts are not ready.", unready)
	}
	switch {
	case left == 1:
		text += " 1 was not reached. Press again."
	case left > 1:
		text += fmt.Sprintf(" %d were not reached. Press again.", left)
	}
	return &notice{Text: text}
}

// copiesSaid says how many copies were made, and in how many months there is none.
func copiesSaid(made, skipped int) *notice {
	text := fmt.Sprintf("%d drafts were made.", made)
	if made == 1 {
		text = "1 draft was made."
	}
	switch {
	case skipped == 1:
		text += " 1 month has no such day, and no draft."
	case skipped > 1:
		text += fmt.Sprintf(" %d months have no such day, and no draft.", skipped)
	}
	return &notice{Text: text}
}

// count reads a number of the query.
func (v *view) count(name string) int {
	n, err := strconv.ParseUint(v.request.URL.Query().Get(name), 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}
