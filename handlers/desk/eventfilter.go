package desk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
)

// This file narrows the list of events: by tabs, a type, a month and words.

// The tabs that are no views of the store: all events, and a month as a calendar.
const (
	allTab   = "all"
	monthTab = "month"
)

// eventViews are the tabs of the list.
var eventViews = []choice{
	{Value: string(events.Upcoming), Label: "Upcoming"},
	{Value: string(events.Past), Label: "Past"},
	{Value: string(events.Drafts), Label: "Drafts"},
	{Value: allTab, Label: "All"},
	{Value: monthTab, Label: "Month"},
}

// maxListedEvents is how many events a page of the list has.
const maxListedEvents = 25

// maxMonths bounds the months that are offered.
const maxMonths = 240

// filterOf reads a filter. Words are looked for on all tabs, until one of them is chosen.
func filterOf(query url.Values, now time.Time) eventFilter {
	f := eventFilter{View: query.Get("view"), Series: query.Get("series"), From: query.Get("from"), Type: clip.Text(query.Get("type"), maxLabel), Month: query.Get("month"), Query: clip.Text(query.Get("q"), maxTitle)}
	if !events.IsID(f.Series) {
		f.Series = ""
	}
	if !isTab(f.From) {
		f.From = string(events.Upcoming)
	}
	switch {
	case isTab(f.View):
		f.From = f.View
	case f.Query == "":
		f.View = f.From
	default:
		f.View = allTab
	}
	_, _, isMonth := events.MonthIn(f.Month, time.UTC)
	if !isMonth || f.From == monthTab && f.View == allTab { // which has no part in the search
		f.Month = ""
	}
	if f.View == monthTab && f.Month == "" {
		f.Month = now.Format(events.MonthFormat)
	}
	return f
}

func isTab(name string) bool {
	return slices.ContainsFunc(eventViews, func(v choice) bool { return v.Value == name })
}

// query is what the store is asked for.
func (f eventFilter) query(zone *time.Location) events.Query {
	q := events.Query{Text: f.Query, Series: f.Series, Type: f.Type, Most: maxListedEvents, IsLatestFirst: f.View == allTab}
	if f.View != allTab && f.View != monthTab {
		q.View = events.View(f.View)
	}
	if from, until, ok := events.MonthIn(f.Month, zone); ok {
		q.From, q.Until = from, until
	}
	return q
}

// address is that of the list with a filter, and of the page behind some event.
func (f eventFilter) address(after string) string {
	query := url.Values{"view": {f.View}}
	for name, value := range map[string]string{"q": f.Query, "type": f.Type, "month": f.Month, "series": f.Series, "after": after} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "events?" + query.Encode()
}

// First is the address of the first page.
func (f eventFilter) First() string { return f.address("") }

// All is the address of the tab without what narrows it.
func (f eventFilter) All() string { return eventFilter{View: f.View, Series: f.Series}.address("") }

// tabs are those of a filter, with what each would have.
func (f eventFilter) tabs(t events.Tally) (tabs []eventTab) {
	for _, v := range eventViews {
		of := f
		of.View = v.Value
		if v.Value != monthTab && f.View == monthTab { // whose month was not chosen to narrow a list
			of.Month = ""
		}
		v.IsChosen = v.Value == f.View
		tab := eventTab{choice: v, Address: of.address(""), IsList: f.View != monthTab && v.Value != monthTab}
		switch v.Value {
		case allTab:
			tab.Count = t.Views[events.AllEvents]
		default:
			tab.Count = t.Views[events.View(v.Value)]
		}
		tabs = append(tabs, tab)
	}
	return tabs
}

// months are those that have events, and the one that is chosen, the latest first.
func (f eventFilter) months(t events.Tally) (months []choice) {
	counts := maps.Clone(t.Months)
	if f.Month != "" {
		counts[f.Month] += 0
	}
	for month, n := range counts {
		months = append(months, choice{Value: month, Label: fmt.Sprintf("%s (%d)", monthName(month), n), IsChosen: month == f.Month})
	}
	slices.SortFunc(months, func(a, b choice) int { return cmp.Compare(b.Value, a.Value) })
	if i := slices.IndexFunc(months, func(c choice) bool { return c.IsChosen }); i >= maxMonths { // it stays
		months[maxMonths-1] = months[i]
	}
	return months[:min(len(months), maxMonths)]
}

// monthName is a month such as 2026-05 in words.
func monthName(month string) string {
	from, _, ok := events.MonthIn(month, time.UTC)
	if !ok {
		return ""
	}
	return from.Format("January 2006")
}

// typesOf are those of the active theme, and those that other events have.
func (r *eventsView) typesOf(f eventFilter, t events.Tally) (types []choice) {
	counts := maps.Clone(t.Types)
	if f.Type != "" {
		counts[f.Type] += 0
	}
	if r.declared != nil {
		for _, of := range r.declared.Types {
			counts[of.Key] += 0
		}
	}
	for key, n := range counts {
		types = append(types, choice{Value: key, Label: fmt.Sprintf("%s (%d)", r.labelOf(key), n), IsChosen: key == f.Type})
	}
	slices.SortFunc(types, func(a, b choice) int { return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Value, b.Value)) })
	return types[:min(len(types), maxMonths)]
}

// narrow fills in what the list is narrowed by.
func (r *eventsView) narrow(ctx context.Context, shown *eventList, f eventFilter, zone *time.Location) error {
	tally, err := r.events.Tally(ctx, r.site.Name, f.query(zone), zone)
	if err != nil {
		return away(err)
	}
	shown.Filter, shown.Tabs, shown.Months, shown.Types = f, f.tabs(tally), f.months(tally), r.typesOf(f, tally)
	return nil
}
