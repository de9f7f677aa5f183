// Package events keeps the events of a site, from draft to published post (docs/events.md).
//
// An editor's event is kept in the store first, and then synced to the publishing platform
// as a post: work of the kind [Kind]. What staff change of that post's
// title, slug, excerpt and picture comes back into the event.
package events

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Kind is the kind of work that syncs an event to its post. Its keys are events' IDs.
const Kind = "events"

// Event is an event of a site.
type Event struct {
	Site string
	ID   string // of letters and digits, unique

	// Theme is the theme whose manifest declares the type, and Type its key there.
	Theme, Type string

	// Values are those of standard and custom fields, by their keys: text, numbers,
	// booleans and lists of text, as encoding/json decodes them.
	Values map[string]any

	Status Status

	// Revision changes with each change of the event.
	Revision int64

	CreatedAt, UpdatedAt time.Time

	// Post is what the platform has of it, as far as is known, and Order what it is to have.
	Post  Post
	Order Order

	// Moves are the last changes of when and where it is, as readers knew it, the earliest first. Known is what they know of an event
	// that was published and is not now, nil for another.
	Moves []Move
	Known *Schedule

	// Shape is how its post is made, by the manifest at the time when it was last saved.
	Shape Shape

	// Pending is nil if the platform has all that it should.
	Pending *Pending

	lateAt time.Time // when to check for a second post that may have been made, or zero
	body   string    // what readers get, "" if they do not find it
	isOver bool      // Change removes it
}

// has reports whether the type of an event has a field.
func (e *Event) has(key string) bool { return slices.Contains(e.Shape.Fields, key) }

// Text is "" if the type does not have the field, or its value is not text.
func (e *Event) Text(key string) string {
	if !e.has(key) {
		return ""
	}
	return textOf(e.Values, key)
}

// Shape is what a theme's manifest says of an event.
type Shape struct {
	Label    string   `json:"label"` // of the type
	Template string   `json:"template"`
	Tags     []string `json:"tags"`
	Fields   []string `json:"fields"` // that the type has

	// Own are the keys of custom fields that are also those of standard ones: manifests may
	// name a field like one that comes with another.
	Own []string `json:"own,omitempty"`

	// AskName is whether guests are asked for their name.
	AskName manifest.NameQuestion `json:"ask_name,omitempty"`

	// Labels are those of the custom fields that readers are shown, in the order of the manifest.
	Labels []FieldLabel `json:"labels,omitempty"`

	// Checked is what becomes of the event when staff publish its post on the platform,
	// "" if its values are not those of an event that can be published, or nobody has checked.
	Checked Status `json:"checked,omitempty"`

	// Wrong are the fields of a draft with which it cannot be published. What a post has of
	// them stays.
	Wrong []string `json:"wrong,omitempty"`

	// IsPostWrong means that the platform would not take the post of a draft, though none of its fields
	// is wrong: all texts together, or what the type says of the post, are too long.
	IsPostWrong bool `json:"is_post_wrong,omitempty"`

	// Required are those of the fields in a post that have to be filled.
	Required []string `json:"required,omitempty"`
}

// FieldLabel is what a custom field is called.
type FieldLabel struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

// since says what was done with an event that was another one before, "" for nothing that its history
// has.
func (e *Event) since(before *Event) string {
	switch {
	case e.Status == deleted:
	case e.Status == Draft && before.Status.isPublic():
		return "unpublished"
	case e.Status != before.Status:
		return string(e.Status)
	case e.Order.HasPost && !before.Order.HasPost:
		return "written"
	case e.Order.PutsCard && !before.Order.PutsCard:
		return "restored"
	case before.Post.Status != platform.Scheduled && e.Post.Status == platform.Scheduled:
		return "scheduled"
	case e.Theme != before.Theme || e.Type != before.Type || !reflect.DeepEqual(e.Values, before.Values):
		return history.Changed
	}
	return ""
}

// Order is what staff have asked for of the post of an event, beside the values.
type Order struct {
	// HasPost means that a draft is to have a post, for its text.
	HasPost bool `json:"has_post,omitempty"`

	// IsTakenBack means that the post of a draft is to be a draft too. Otherwise, that is for
	// staff to say on the platform.
	IsTakenBack bool `json:"is_taken_back,omitempty"`

	// PutsCard means that the card in its text is to be ours again.
	PutsCard bool `json:"puts_card,omitempty"`

	// Author is the ID of the member of the staff in whose name the post is made, "" for the
	// owner of the publication.
	Author string `json:"author,omitempty"`
}

// Status is what an editor has made of an event.
type Status string

// The statuses.
const (
	Draft     Status = "draft"
	Published Status = "published"
	Cancelled Status = "cancelled" // its post stays, and says so

	// deleted is an event whose post is still to be taken back.
	deleted Status = "deleted"
)

// isPublic reports whether readers find the event, once its post is published.
func (s Status) isPublic() bool { return s == Published || s == Cancelled }

// wantsPost reports whether the platform is to have a post of the event.
func (e *Event) wantsPost() bool {
	return e.Status.isPublic() || e.Status == Draft && (e.Order.HasPost || e.Post.ID != "")
}

// Post is the post of an event, as the platform last had it. The zero value is none.
type Post struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Slug     string   `json:"slug"`
	Excerpt  string   `json:"excerpt"`
	Picture  string   `json:"picture"`
	Alt      string   `json:"alt,omitempty"` // of the picture
	Status   string   `json:"status"`        // as platform.EventPost has it
	Template string   `json:"template"`      // that was given to it
	Tags     []string `json:"tags"`          // that were given to it, not all that it has
	URL      string   `json:"url"`
	Edit     string   `json:"edit"`

	// PublishAt is when the platform publishes it, zero if it is not scheduled.
	PublishAt time.Time `json:"publish_at,omitzero"`

	// Page is the sum of what its page has beside the event, "" for a page that was written
	// before there was one, and for none.
	Page string `json:"page,omitempty"`

	// Start is the start of the event that readers were first told since it was published, as
	// JSON has it, "" for none.
	Start string `json:"start,omitempty"`

	// Card is what became of the card in its text.
	Card Card `json:"card,omitempty"`

	// IsLost means that there was a post, which somebody has deleted.
	IsLost bool `json:"is_lost,omitempty"`
}

// Pending is what the platform does not have yet.
type Pending struct {
	Since   time.Time
	Tries   int
	Problem string // of the last try, "" for none
}

// Settings are those of a site's events.
type Settings struct {
	// ImageSize is the Default Featured Image Size, such as "1600 x 900 px", "" for the
	// one that is built in.
	ImageSize string `json:"image_size"`

	// CalendarName is what the calendar of all events is called for those who subscribe to
	// it, "" for the name of the site.
	CalendarName string `json:"calendar_name"`

	// Messages are the texts of messaging states, by their names. One that is missing or
	// empty is the theme's to choose.
	Messages map[string]string `json:"messages"`

	Mails MailSettings `json:"mails"`
}

// MailSettings are those of the mails to registrants (docs/mail.md). They are zero where staff have changed none.
type MailSettings struct {
	NoDay bool `json:"no_day,omitempty"` // no reminder a day before an event
	Hour  bool `json:"hour,omitempty"`   // a reminder an hour before it

	// OfferHours is for how long a place is kept for who is invited from a waiting list, also at a site without mails; 0 is
	// DefaultOfferHours.
	OfferHours int `json:"offer_hours,omitempty"`

	// Texts are those that staff have written, by MailKinds, each in one paragraph. One that is missing is ours.
	Texts map[string]string `json:"texts,omitempty"`
}

// These bound OfferHours, which are 1 at least.
const (
	DefaultOfferHours = 24
	MaxOfferHours     = 7 * 24
)

// OfferTime is for how long a place is kept for who is invited from a waiting list.
func (s MailSettings) OfferTime() time.Duration {
	return time.Duration(cmp.Or(s.OfferHours, DefaultOfferHours)) * time.Hour
}

// MailKinds are the mails to registrants whose text staff may write.
func MailKinds() []string {
	return []string{"confirmation", "reminder", "moved", "cancelled", "place", "invitation"}
}

// Merge makes the changes from before to wanted in s, which somebody else may have changed since before.
func (s Settings) Merge(before, wanted Settings) Settings {
	pick := func(now, before, wanted string) string {
		if strings.TrimSpace(wanted) == before {
			return now
		}
		return wanted
	}
	merged := Settings{
		ImageSize: pick(s.ImageSize, before.ImageSize, wanted.ImageSize), CalendarName: pick(s.CalendarName, before.CalendarName, wanted.CalendarName),
		Messages: make(map[string]string),
	}
	merged.Mails = s.Mails
	if wanted.Mails.NoDay != before.Mails.NoDay {
		merged.Mails.NoDay = wanted.Mails.NoDay
	}
	if wanted.Mails.Hour != before.Mails.Hour {
		merged.Mails.Hour = wanted.Mails.Hour
	}
	if wanted.Mails.OfferHours != before.Mails.OfferHours {
		merged.Mails.OfferHours = wanted.Mails.OfferHours
	}
	merged.Mails.Texts = make(map[string]string)
	for _, kind := range MailKinds() {
		merged.Mails.Texts[kind] = pick(s.Mails.Texts[kind], before.Mails.Texts[kind], wanted.Mails.Texts[kind])
	}
	for _, state := range manifest.MessagingStates() {
		merged.Messages[state] = pick(s.Messages[state], before.Messages[state], wanted.Messages[state])
	}
	return merged
}

const (
	// MaxMade is how many events a site's staff may make in madeSpan: two a second, which no
	// desk does by hand, and 15 MB of values.
	MaxMade  = 120
	madeSpan = time.Minute

	// MaxDrafts is how many drafts a site may have: 256 MB of values.
	MaxDrafts = 2000
)

// Errors.
var (
	// ErrNotFound means that the site has no such event.
	ErrNotFound = errcode.New(errcode.NotFound, "the site has no such event", "There is no such event. Somebody may have deleted it.")

	// ErrChanged means that the event was changed since the caller read it.
	ErrChanged = errcode.New(errcode.Changed, "the event was changed since it was read",
		"The event was changed since it was read. Read it again.")

	// ErrTooFast means that the site's staff made too many events a moment ago, and ErrTooMany
	// that the site has too many drafts.
	ErrTooFast = errcode.NewWait(errcode.RateLimited, time.Minute, "too many events were made a moment ago",
		fmt.Sprintf("This site made %d events in the last minute. Wait a minute, and try again.", MaxMade))
	ErrTooMany = errcode.New(errcode.Invalid, "the site has too many drafts",
		fmt.Sprintf("This site has %d drafts, which is the most. Delete or publish some of them first.", MaxDrafts))

	// ErrNoPost means that there is nothing to cancel or to unpublish.
	ErrNoPost = errcode.New(errcode.Conflict, "the event is not published", "The event is not published.")
)

// KeyUsedError means that another event was made with a key.
type KeyUsedError struct {
	ID string // of the event, "" while it is being deleted

	// Revision is that of the event, 0 if somebody has changed it since it was made.
	Revision int64
}

func (e *KeyUsedError) Error() string { return "another event was made with this key" }

// Describe says what a program can do.
func (e *KeyUsedError) Describe() errcode.Description {
	message := "The Idempotency-Key was used for another event."
	if e.ID == "" {
		message = "The event that was made with this Idempotency-Key is being deleted. Send another key."
	}
	return errcode.Description{Code: errcode.Conflict, Message: message}
}

// InvalidError is why values cannot be kept, or an event cannot be published.
type InvalidError struct{ Problems []manifest.Problem }

func (e *InvalidError) Error() string {
	if len(e.Problems) == 0 {
		return "the event is not valid"
	}
	return e.Problems[0].Message
}

// Describe has the first problem, and how many there are.
func (e *InvalidError) Describe() errcode.Description {
	message := "The event is not as its type demands."
	if len(e.Problems) > 0 {
		message = e.Problems[0].Message
	}
	if n := len(e.Problems); n > 1 {
		message += fmt.Sprintf(" There are %d problems in all.", n)
	}
	return errcode.Description{Code: errcode.Invalid, Message: message}
}
