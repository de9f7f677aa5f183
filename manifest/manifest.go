// Package manifest reads the manifest file of a theme: which event types the
// event editor offers, and which slots the homepage has for editors to fill.
//
// [Parse] turns the bytes of the file into a [Manifest] of the parts that are
// right, and a [Finding] for each part that is not. [EventType.Publish] checks
// an event before it is published. Everything here is a function of its
// arguments: no files, no network, no database.
//
// docs/manifest.md describes the file to those who write one. Here, parse.go reads it
// from the top, events.go and curation.go its two parts, and names.go has the names
// that it may use: standard fields, types of custom fields, messaging states.
package manifest

// Version is the only manifest_version there is.
const Version = 1

// MaxSize is the longest file, in bytes: 256 KiB.
const MaxSize = 256 << 10

// What a picker has unless the manifest says otherwise.
const (
	// RecentView and SearchView are the tabs of a slot's picker.
	RecentView = "recent"
	SearchView = "search"

	// DefaultRecentLimit and MaxRecentLimit count posts.
	DefaultRecentLimit = 20
	MaxRecentLimit     = 50
)

// Manifest is what a file declares and the edge may use: every part has been
// checked, defaults are filled in, and types, fields, sections and slots have
// the order of the file. Lists are never nil. A manifest that was parsed from
// its own JSON is equal to it.
type Manifest struct {
	Version int `json:"manifest_version"`

	// Events is nil if no event type is left, Curation if no section is.
	Events   *Events   `json:"events,omitempty"`
	Curation *Curation `json:"homepage_curation,omitempty"`
}

// Events are the event types, at least one.
type Events struct {
	DefaultTags []string `json:"default_tags"` // as written; EventTags merges them
	Types       Types    `json:"types"`
}

// Types are event types in the order of the file. Their JSON is an object with
// that order, as in the file.
type Types []EventType

// EventType says what the editor offers for one type of event, and what a post
// of it looks like.
type EventType struct {
	Key          string   `json:"-"` // its key in Types
	PostTemplate string   `json:"post_template"`
	Label        string   `json:"label"`
	Tags         []string `json:"tags"` // without the default tags

	// SupportedFields are the standard fields offered, all if the file names
	// none; RequiredFields are those of them without which nothing is
	// published.
	SupportedFields  []string         `json:"supported_fields"`
	RequiredFields   []string         `json:"required_fields"`
	FieldConstraints FieldConstraints `json:"field_constraints"`
	CustomFields     []CustomField    `json:"custom_fields"`
	MessagingStates  []string         `json:"messaging_states"` // no effect

	// AskName is whether guests are asked for their name as they register: "" for not at all.
	AskName NameQuestion `json:"ask_name,omitempty"`

	Default bool `json:"default"` // of one type at most
}

// NameQuestion is how guests are asked for their name.
type NameQuestion string

// The questions.
const (
	NameIsOptional NameQuestion = "optional"
	NameIsRequired NameQuestion = "required"
)

// FieldConstraints are hints on standard fields in the order of the file. Their
// JSON is an object with that order.
type FieldConstraints []FieldConstraint

// FieldConstraint is a hint for who fills in a standard field. Publishing does
// not check it.
type FieldConstraint struct {
	Field string `json:"-"` // its key in FieldConstraints
	Constraints
}

// Constraints are the bounds of a field's value; those that its kind has not
// are zero.
type Constraints struct {
	MaxLength   int      `json:"max_length,omitempty"` // code points
	Pattern     string   `json:"pattern,omitempty"`    // regular expression; stored, not enforced
	Min         *float64 `json:"min,omitempty"`
	Max         *float64 `json:"max,omitempty"`
	AspectRatio string   `json:"aspect_ratio,omitempty"` // width:height
	MinWidth    int      `json:"min_width,omitempty"`    // pixels
	MinHeight   int      `json:"min_height,omitempty"`   // pixels

	MaxFileSizeKB int `json:"max_file_size_kb,omitempty"` // stored, not enforced
}

// CustomField is a field of the theme's own.
type CustomField struct {
	Key      string   `json:"key"` // unique in its type, no standard field's
	Label    string   `json:"label"`
	Type     string   `json:"type"` // such as "text"; docs/manifest.md lists them
	Required bool     `json:"required"`
	HelpText string   `json:"help_text,omitempty"`
	Options  []string `json:"options,omitempty"` // of a select, at least one
	Constraints
}

// Curation are the sections of the homepage, at least one.
type Curation struct {
	Sections []Section `json:"sections"`
}

// Section is a group of slots on the curation screen.
type Section struct {
	Key         string `json:"key"` // unique
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Picker      Picker `json:"picker"`
	Slots       []Slot `json:"slots"` // at least one
}

// Picker is how the posts for a section's slots are offered.
type Picker struct {
	DefaultView  string        `json:"default_view"` // RecentView or SearchView
	RecentLimit  int           `json:"recent_limit"` // posts, 1 to MaxRecentLimit
	RecentFilter *RecentFilter `json:"recent_filter,omitempty"`
}

// RecentFilter limits a picker to the posts that carry a tag.
type RecentFilter struct {
	Tag string `json:"tag"`
}

// Slot is a place for one post, the one that carries its tag.
type Slot struct {
	Key   string `json:"key"` // unique in its section
	Label string `json:"label"`
	Tag   string `json:"tag"` // as written; unique in the manifest: #x is hash-x, and case is ignored
}

// Type looks an event type up by its key.
func (e *Events) Type(key string) (EventType, bool) {
	if e != nil {
		for _, t := range e.Types {
			if t.Key == key {
				return t, true
			}
		}
	}
	return EventType{}, false
}
