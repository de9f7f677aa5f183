package events

import (
	"regexp"
	"slices"

	ical "github.com/arran4/golang-ical"

	"github.com/lychgate/caddy-lychgate/platform"
)

// Field is a standard field, which an event type of any theme may have. Whatever depends on
// the field stands in its row of standardFields.
type Field struct {
	Key, Label string

	// Kind is that of its input, and of the check of its value: a type of custom fields
	// (docs/manifest.md#custom-fields), or one of the kinds below.
	Kind string

	Help    string   // "" where the label says it all
	Choices []Choice // of an AccessKind

	// limit returns how many code points the platform takes. It is nil for what only
	// Lychgate keeps.
	limit func(platform.PostLimits) int

	// date is the key of the date that a TimeKind is a time of.
	date string

	// isUnique means that a duplicate of the event does not get the value.
	isUnique bool

	// check says what is wrong with a text that its kind allows, "" for nothing.
	check func(text string, values map[string]any) string

	// public adds what readers get. It is nil for what they never get, so a new field is not
	// public unless its row says so.
	public func(to *object, key string, of shownEvent)

	// calendar is the property of a calendar's entry that has the text, unless a field before
	// this one has filled it. "" is none.
	calendar ical.ComponentProperty

	// linked adds the field to schema.org's Event, out of what readers get. value is the
	// field's there. It is nil for none.
	linked func(to *object, value any, public map[string]any)
}

// Choice is a value that editors choose.
type Choice struct{ Value, Label string }

// These kinds are of standard fields alone.
const (
	TimeKind   = "time"
	ZoneKind   = "zone"
	AccessKind = "access"
	LabelsKind = "labels"
)

// These are who may register for an event: its access.
const (
	AccessAnyone = "anyone"
	AccessFree   = "free"
	AccessPaid   = "paid"
)

// standardFields are in the order in which readers get them. The editor has the order of
// manifest.StandardFields.
var standardFields = []Field{
	{
		Key: "name", Label: "Name", Kind: "text", limit: func(l platform.PostLimits) int { return l.Title },
		public: publicText, calendar: ical.ComponentPropertySummary,
		linked: func(to *object, value any, _ map[string]any) { to.add("name", value) },
	},
	{
		Key: "description", Label: "Description", Kind: "textarea", Help: "Shown in lists of posts and in search results.",
		limit:  func(l platform.PostLimits) int { return l.Excerpt },
		public: publicText, calendar: ical.ComponentPropertyDescription,
		linked: func(to *object, value any, _ map[string]any) { to.addFilled("description", value) },
	},
	{
		Key: "slug", Label: "URL slug", Kind: "text", Help: "The end of the page's address. Left empty, it is made from the name.",
		limit: func(l platform.PostLimits) int { return l.Slug }, isUnique: true, check: checkSlug,
		public: func(to *object, _ string, of shownEvent) { to.addFilled("url", of.page.URL) }, // its slug is the post's
	},
	{
		Key: "feature_image", Label: "Featured image", Kind: "image", limit: func(l platform.PostLimits) int { return l.Picture },
		public: publicText,
		linked: func(to *object, value any, _ map[string]any) {
			if value != "" {
				to.add("image", []any{value})
			}
		},
	},
	{Key: "event_date", Label: "Date", Kind: "date", isUnique: true, public: publicText, linked: linkedSchedule},
	{Key: "event_time_start", Label: "Start time", Kind: TimeKind, date: "event_date", public: publicText},
	{Key: "event_time_end", Label: "End time", Kind: TimeKind, date: "event_date", check: checkEnd, public: publicText},
	{
		Key: "event_time_zone", Label: "Time zone", Kind: ZoneKind, public: publicZone,
		Help: "An IANA name, such as Europe/Berlin. All times here are in this zone. Left empty, they are in UTC.",
	},
	{
		Key: "registration_deadline", Label: "Registration deadline", Kind: "date", Help: "The last day to register.", isUnique: true,
		check:  checkDeadline,
		public: func(to *object, _ string, of shownEvent) { to.add("deadline", rfc3339(of.when.Deadline)) },
	},
	{
		Key: "deadline_time_end", Label: "Deadline time", Kind: TimeKind, Help: "Without a time, registration ends with the day.",
		date: "registration_deadline",
	},
	{Key: "location", Label: "Location", Kind: "text", public: publicText, calendar: ical.ComponentPropertyLocation, linked: linkedPlaces},
	{
		Key: "platform_url", Label: "Online event link", Kind: "url", Help: "Readers see it on the page only where everybody may register.",
		public: func(to *object, key string, of shownEvent) {
			if accessOf(of.values) == AccessAnyone {
				to.addFilled(key, textOf(of.values, key))
			}
		},
		calendar: ical.ComponentPropertyLocation,
	},
	{
		Key: "max_attendees", Label: "Maximum attendees", Kind: "number", Help: "Leave it empty for no limit.",
		public: func(to *object, key string, of shownEvent) { to.add(key, wholeNumber(of.values[key])) },
		linked: func(to *object, value any, _ map[string]any) { to.addFilled("maximumAttendeeCapacity", value) },
	},
	{
		Key: "access", Label: "Access", Kind: AccessKind, Help: "Who may register.",
		Choices: []Choice{{AccessAnyone, "Anyone"}, {AccessFree, "Members, free ones too"}, {AccessPaid, "Paid members"}},
		public:  func(to *object, key string, of shownEvent) { to.add(key, accessOf(of.values)) },
		linked: func(to *object, value any, _ map[string]any) {
			if value != "" {
				to.add("isAccessibleForFree", value != AccessPaid)
			}
		},
	},
	{Key: "rsvp_labels", Label: "Labels for registrants", Kind: LabelsKind, Help: "For the members who register."}, // never public
}

// StandardField returns the standard field with a key, and false if there is none.
func StandardField(key string) (*Field, bool) {
	i := slices.IndexFunc(standardFields, func(f Field) bool { return f.Key == key })
	if i < 0 {
		return nil, false
	}
	return &standardFields[i], true
}

// Limit returns how many code points of the field the platform takes, 0 for what it does not
// keep.
func (f *Field) Limit(of platform.PostLimits) int {
	if f.limit == nil {
		return 0
	}
	return f.limit(of)
}

var slugPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func checkSlug(text string, _ map[string]any) string {
	if !slugPattern.MatchString(text) {
		return "must have lower-case letters, digits and single hyphens only, such as summer-party"
	}
	return ""
}

// accessOf returns who may register for an event, "" if its editor has not said so in a way
// that can be published. Nothing else reads the value: white space around it is ignored
// everywhere.
func accessOf(values map[string]any) string {
	switch access := textOf(values, "access"); access {
	case AccessAnyone, AccessFree, AccessPaid:
		return access
	}
	return ""
}

// shownEvent is what the fields of an event that readers find are made of.
type shownEvent struct {
	values map[string]any // of fields that the event's type has
	when   When
	page   Post // the zero value on the page itself, which does without its address
}

func publicText(to *object, key string, of shownEvent) { to.add(key, textOf(of.values, key)) }

// publicZone also adds the times that the fields before it say: of the whole day as dates, whose
// last is the day after.
func publicZone(to *object, key string, of shownEvent) {
	publicText(to, key, of)
	w := of.when
	end := w.format(w.End)
	if !w.AllDay && !w.HasEnd {
		end = nil
	}
	to.add("start", w.format(w.Start))
	to.add("end", end)
	to.add("all_day", w.AllDay)
}

const schemaOrg = "https://schema.org/"

// linkedSchedule adds when an event is, and whether it takes place then.
func linkedSchedule(to *object, _ any, public map[string]any) {
	to.addFilled("startDate", textOf(public, "start"))
	if public["all_day"] == false { // of the whole day, the one date says it
		to.addFilled("endDate", textOf(public, "end"))
	}
	status := "EventScheduled"
	if textOf(public, "status") == string(Cancelled) {
		status = "EventCancelled"
	}
	to.add("eventStatus", schemaOrg+status)
}

// linkedPlaces adds where an event is: at a location, online, or both.
func linkedPlaces(to *object, _ any, public map[string]any) {
	var places []any
	mode := "OfflineEventAttendanceMode"
	if name := textOf(public, "location"); name != "" {
		places = append(places, object{{"@type", "Place"}, {"name", name}, {"address", name}})
	}
	if link := textOf(public, "platform_url"); link != "" {
		if mode = "OnlineEventAttendanceMode"; len(places) > 0 {
			mode = "MixedEventAttendanceMode"
		}
		places = append(places, object{{"@type", "VirtualLocation"}, {"url", link}})
	}
	if len(places) > 0 {
		to.add("eventAttendanceMode", schemaOrg+mode)
		to.add("location", places)
	}
}
