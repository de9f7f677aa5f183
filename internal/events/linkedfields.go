package events

import (
	"net/url"
	"regexp"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file writes an event in the vocabulary of https://schema.org/Event, as search engines ask
// for it (docs/events_themes.md#search-engines): what fields add to it, by their rows of standardFields.

const schemaOrg = "https://schema.org/"

// linkedEvent is what the linked data of an event is made of.
type linkedEvent struct {
	public map[string]any // what readers get

	// hasHiddenLink means that the event is online, at a link that not everybody may know.
	hasHiddenLink bool

	// announced is the start that readers were first told, as JSON has it, "" for none.
	announced string

	address            string // of its page, "" while nobody knows it
	publication        platform.Publication
	takesRegistrations bool
}

func (of linkedEvent) text(key string) string { return textOf(of.public, key) }

func (of linkedEvent) isCancelled() bool { return of.text("status") == string(Cancelled) }

// linkedSchedule adds when an event is, and whether it takes place then. A date that was taken
// away after readers knew it stays, as search engines ask for it, with the status that says so.
func linkedSchedule(to *object, _ any, of linkedEvent) {
	start, status, previous := of.text("start"), "EventScheduled", ""
	switch {
	case of.isCancelled():
		status = "EventCancelled"
	case of.announced != "" && start == "":
		start, status = of.announced, "EventPostponed"
	case isMoved(of.announced, start):
		status, previous = "EventRescheduled", of.announced
	}
	to.addFilled("startDate", start)
	if of.public["all_day"] == false {
		to.addFilled("endDate", of.text("end"))
	} else if last, ok := laterDay(of.public); ok { // the end of one whole day is not said
		to.add("endDate", last.Format(dateFormat))
	}
	to.add("eventStatus", schemaOrg+status)
	to.addFilled("previousStartDate", previous)
}

// isMoved reports whether an event starts at another time than it did. A time of day that was
// added or taken away moves nothing.
func isMoved(from, to string) bool {
	if from == "" || to == "" {
		return false
	}
	if days := len(dateFormat); len(from) == days || len(to) == days {
		return from[:min(days, len(from))] != to[:min(days, len(to))]
	}
	was, err := time.Parse(time.RFC3339, from)
	is, errNow := time.Parse(time.RFC3339, to)
	return err == nil && errNow == nil && !was.Equal(is)
}

// linkedPlaces adds where an event is: at a location, online, or both. A link that not everybody
// may know is never said: the page, where members find it, stands for it.
func linkedPlaces(to *object, _ any, of linkedEvent) {
	var places []any
	virtual := func(address string) {
		if address != "" {
			places = append(places, object{{"@type", "VirtualLocation"}, {"url", address}})
		}
	}
	name, link := of.text("location"), of.text("platform_url")
	isOnline := link != "" || of.hasHiddenLink
	switch {
	case linkOf(name) != "":
		isOnline = true
		virtual(name)
		name = ""
	case name != "":
		places = append(places, object{{"@type", "Place"}, {"name", name}, {"address", name}})
	}
	if link != "" {
		virtual(link)
	} else if of.hasHiddenLink {
		virtual(of.address)
	}
	switch {
	case isOnline && name != "":
		to.add("eventAttendanceMode", schemaOrg+"MixedEventAttendanceMode")
	case isOnline:
		to.add("eventAttendanceMode", schemaOrg+"OnlineEventAttendanceMode")
	case name != "":
		to.add("eventAttendanceMode", schemaOrg+"OfflineEventAttendanceMode")
	}
	if len(places) > 0 {
		to.add("location", places)
	}
}

// These are custom fields by which a theme says what an event costs: a number, and its currency as
// ISO 4217 has it.
const (
	priceField    = "price"
	currencyField = "currency"
)

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

// linkedOffer adds how to come: for what price, if the theme knows it, and else whether members
// pay for what others read. The places that are left change too often to be said.
func linkedOffer(to *object, value any, of linkedEvent) {
	custom, _ := of.public["fields"].(map[string]any)
	price, hasPrice := custom[priceField].(float64)
	currency := textOf(custom, currencyField)
	isPriced := hasPrice && price >= 0 && currencyPattern.MatchString(currency)
	access, _ := value.(string)
	if access != "" && !hasPrice {
		to.add("isAccessibleForFree", access != AccessPaid)
	}
	if !isPriced && (access == "" || !of.takesRegistrations) || of.isCancelled() {
		return
	}
	offer := object{{"@type", "Offer"}}
	offer.addFilled("url", of.address)
	if isPriced {
		offer.add("price", price)
		offer.add("priceCurrency", currency)
	}
	if of.public["max_attendees"] == nil {
		offer.add("availability", schemaOrg+"InStock")
	}
	offer.addFilled("validThrough", of.text("deadline"))
	to.add("offers", offer)
}

// ratios are those in which search engines ask for a picture, in pixels.
var ratios = []struct{ width, height string }{{"1920", "1080"}, {"1920", "1440"}, {"1920", "1920"}}

// ghostSize is the part of a picture's path by which Ghost makes it smaller.
var ghostSize = regexp.MustCompile(`/content/images/size/[^/]+/(?:format/[^/]+/)?`)

// linkedImages adds a picture: as large as there is, and in each ratio if its server cuts it.
func linkedImages(to *object, value any, _ linkedEvent) {
	address, _ := value.(string)
	if address == "" {
		return
	}
	u, err := url.Parse(address)
	if err != nil || u.Host != "images.unsplash.com" {
		to.add("image", []any{ghostSize.ReplaceAllString(address, "/content/images/")})
		return
	}
	var images []any
	for _, r := range ratios {
		query := u.Query()
		query.Set("fit", "crop")
		query.Set("w", r.width)
		query.Set("h", r.height)
		cut := *u
		cut.RawQuery = query.Encode()
		images = append(images, cut.String())
	}
	to.add("image", images)
}
