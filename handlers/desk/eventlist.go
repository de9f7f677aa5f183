package desk

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// list shows a page of the list.
func (r *eventsView) list(ctx context.Context) (any, error) {
	query := r.request.URL.Query()
	shown := &eventList{Theme: clip.Text(r.theme, maxLabel), HasTypes: r.declared != nil, IsSeen: r.isSeen, HasMore: query.Get("after") != ""}
	if !shown.HasTypes {
		ofEvents := themes.OfEvents(r.findings)
		shown.Findings = shownFindings(ofEvents)
		shown.More = len(ofEvents) - len(shown.Findings)
	}
	zone, isKnown := r.siteZone(ctx)
	filter := filterOf(query, r.events.Now().In(zone))
	shown.Zone, shown.IsZoneKnown, r.zone = zone.String(), isKnown, zone
	if err := r.narrow(ctx, shown, filter, zone); err != nil {
		return nil, err
	}
	var err error
	if shown.Series, err = r.series(ctx, filter.Series); err != nil {
		return nil, err
	}
	if filter.View == monthTab {
		return eventsPage{List: shown, Notice: r.eventDone("")}, r.month(ctx, shown, zone)
	}
	search := filter.query(zone)
	search.After = query.Get("after")
	page, err := r.events.List(ctx, r.site.Name, search)
	if err != nil {
		return nil, away(err)
	}
	shown.Total = page.Total
	list := r.current(ctx, page.Events)
	places, err := r.places(ctx, list...)
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		of := r.listed(e, zone)
		of.Guests = places[i]
		shown.Events = append(shown.Events, of)
	}
	if page.Next != "" {
		shown.Next = filter.address(page.Next)
	}
	return eventsPage{List: shown, Notice: r.eventDone("")}, nil
}

// listed shows an event whose date is in a time zone.
func (r *eventsView) listed(e events.Event, zone *time.Location) listedEvent {
	shown := listedEvent{ID: e.ID, Name: nameOf(e.Values), When: dateOf(e), Type: r.labelOf(e.Type), Status: string(e.Status), Post: postOf(e), Pending: r.pendingOf(e)}
	if shown.When == "" {
		shown.When = "No date"
	}
	if w := e.When(); !w.Start.IsZero() {
		here, there := dateIn(w, zone), dateIn(w, w.Start.Location())
		if here != there {
			shown.There = shown.When
		}
		shown.When = here
	}
	shown.View, shown.Preview, shown.Text = r.addressesOf(e)
	shown.PublishAt = e.Post.PublishAt
	if missing := r.missing(e); shown.Post == "out" && len(missing) > 0 {
		shown.Missing = missing[0].Message
	}
	return shown
}

// places says how many are registered for each of some events, and how many wait.
func (r *eventsView) places(ctx context.Context, list ...events.Event) ([]*shownPlaces, error) {
	guests, err := r.guests()
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(list))
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	taken, err := guests.Taken(ctx, r.site.Name, ids)
	if err != nil {
		return nil, away(err)
	}
	waiting, err := guests.Waiting(ctx, r.site.Name, ids)
	if err != nil {
		return nil, away(err)
	}
	places := make([]*shownPlaces, len(list))
	for i, e := range list {
		n, hasAny := taken[e.ID]
		if terms := e.Terms(); terms.Access != "" || hasAny {
			places[i] = &shownPlaces{n, terms.Most, waiting[e.ID]}
		}
	}
	return places, nil
}
