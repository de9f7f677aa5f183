package events

import (
	"regexp"
	"slices"

	ical "github.com/arran4/golang-ical"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Field is a standard field, which an event type of any theme may have. Whatever depends on
// the field stands in its row of standardFields.
type Field struct {
	Key, Label string

	// Kind is that of its input, and of the check of its value: a type of custom fields
	// (docs/manifest.md#custom-fields), or one of the kinds below.
	Kind string

	Help    string   // "" where the label says it all
	Choices []Choice // of an AccessKind or a ChoiceKind

	// Unchosen is what no choice means, "" for nothing.
	Unchosen string

	// limit is how many code points the platform takes. It is nil for a field that only Lychgate
	// stores.
	limit func(platform.PostLimits) int

	// with is the key of the field that it comes with: a type that has that field has this one
	// too, unless it has a custom field with the key. "" is a field that manifests name.
	with string

	// More is what a button says that shows the input, "" for an input that is always there.
	More string

	// date is the key of the date that a TimeKind is a time of. If isEnd, it may be a time of
	// a later day.
	date  string
	isEnd bool

	// isUnique means that a duplicate of the event does not get the value.
	isUnique bool

	// spell normalizes a text before it is stored. It is nil for a field that is stored as it is
	// typed.
	spell func(text string) string

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
	linked func(to *object, value any, of linkedEvent)
}

// Choice is a value that editors choose.
type Choice struct{ Value, Label string }

// These kinds are of standard fields alone.
const (
	TimeKind   = "time"
	ZoneKind   = "zone"
	AccessKind = "access"
	LabelsKind = "labels"
	ChoiceKind = "choice"
)

// standardFields are in the order in which readers get them. The editor has that of
// [Type.Fields].
var standardFields = []Field{
	{
		Key: "name", Label: "Name", Kind: "text", limit: func(l platform.PostLimits) int { return l.Title },
		public: publicText, calendar: ical.ComponentPropertySummary,
		linked: func(to *object, value any, _ linkedEvent) { to.add("name", value) },
	},
	{
		Key: "description", Label: "Description", Kind: "textarea", Help: "Shown in lists of posts and in search results.",
		limit:  func(l platform.PostLimits) int { return l.Excerpt },
		public: publicText, calendar: ical.ComponentPropertyDescription,
		linked: func(to *object, value any, _ linkedEvent) { to.addFilled("description", value) },
	},
	{
		Key: "slug", Label: "URL slug", Kind: "text", Help: "The end of the page's address. Left empty, it is made from the name.",
		limit: func(l platform.PostLimits) int { return l.Slug }, isUnique: true, check: checkSlug,
		public: func(to *object, _ string, of shownEvent) { to.addFilled("url", of.page.URL) }, // its slug is the post's
	},
	{
		Key: "feature_image", Label: "Featured image", Kind: "image", limit: func(l platform.PostLimits) int { return l.Picture },
		public: publicText,
		linked: linkedImages,
	},
	{
		Key: "feature_image_alt", Label: "Alt text of the image", Kind: "text", with: "feature_image",
		Help: "What the picture shows, for readers who do not see it.", limit: func(l platform.PostLimits) int { return l.Alt },
	}, // the page of the post has it
	{Key: "event_date", Label: "Date", Kind: "date", isUnique: true, public: publicText, linked: linkedSchedule},
	{Key: "event_time_start", Label: "Start time", Kind: TimeKind, date: "event_date", public: publicText},
	{Key: "event_time_end", Label: "End time", Kind: TimeKind, date: "event_date", isEnd: true, check: checkEnd, public: publicText},
	{
		Key: endDate, Label: "End date", Kind: "date", with: "event_date", More: "Ends on another day", isUnique: true, check: checkEndDate, public: publicText,
		Help: "Leave it empty for an end after midnight: an end time before the start time is on the next day.",
	},
	{
		Key: "event_time_zone", Label: "Time zone", Kind: ZoneKind, spell: spellZone, public: publicZone,
		Help: "All times of the event are in this time zone, such as Europe/Berlin. Left empty, it is UTC.",
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
		Key: "platform_url", Label: "Online event link", Kind: "url", Help: "Readers who are registered see it, and everybody if Access is Anyone.",
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
		linked: func(to *object, value any, _ linkedEvent) { to.addFilled("maximumAttendeeCapacity", value) },
	},
	{
		Key: waitingList, Label: "Waiting list", Kind: ChoiceKind, with: "max_attendees", Help: "Once all places are taken.", Unchosen: "Gives free places in order",
		Choices: []Choice{{WaitingInvites, "Offers free places in order"}, {waitingOff, "No waiting list"}},
	}, // the registration says it
	{
		Key: "access", Label: "Access", Kind: AccessKind, Help: "Who may register.",
		Choices: []Choice{{AccessAnyone, "Anyone"}, {AccessFree, "Members, free ones too"}, {AccessPaid, "Paid members"}},
		public:  func(to *object, key string, of shownEvent) { to.add(key, accessOf(of.values)) },
		linked:  linkedOffer,
	},
	{
		Key: reminders, Label: "Reminders", Kind: ChoiceKind, with: "access", Help: "By mail, to who is registered.", Unchosen: "As Event Settings say",
		Choices: []Choice{
			{remindDay, "A day before"}, {remindHour, "An hour before"}, {remindBoth, "Both"}, {remindNone, "None"},
		},
	}, // never public
	{Key: "rsvp_labels", Label: "Labels for registrants", Kind: LabelsKind, Help: "For the members who register."}, // never public
}

// editorFields are in the order of the editor: that of manifest.StandardFields, and a field that
// comes with another behind the one before it in the table.
var editorFields = func() (fields []*Field) {
	for _, key := range manifest.StandardFields() {
		for i := slices.IndexFunc(standardFields, func(f Field) bool { return f.Key == key }); i >= 0 && i < len(standardFields); i++ {
			if f := &standardFields[i]; f.Key != key && f.with == "" {
				break
			}
			fields = append(fields, &standardFields[i])
		}
	}
	return fields
}()

// EditorKeys lists all standard fields in the order of the editor.
func EditorKeys() (keys []string) {
	for _, f := range editorFields {
		keys = append(keys, f.Key)
	}
	return keys
}

// IsEnd reports whether the field says at which time the event ends.
func (f *Field) IsEnd() bool { return f.isEnd }

// StandardField is for reading only: all callers share the field.
func StandardField(key string) (*Field, bool) {
	i := slices.IndexFunc(standardFields, func(f Field) bool { return f.Key == key })
	if i < 0 {
		return nil, false
	}
	return &standardFields[i], true
}

// Limit is in code points. It is 0 for a field that the platform does not store.
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
	if IsID(text) {
		return "reads like the ID of an event: write a hyphen between its words"
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
	to.add(key, spellZone(textOf(of.values, key)))
	w := of.when
	end := w.format(w.End)
	if !w.AllDay && !w.HasEnd {
		end = nil
	}
	to.add("start", w.format(w.Start))
	to.add("end", end)
	to.add("all_day", w.AllDay)
}
