package platform

import (
	"context"
	"time"
)

// EventHost is a PostHost whose posts show events.
//
// Calls are bounded in time, and may have had their effect when they fail, as those of
// [Platform].
type EventHost interface {
	PostHost

	// AddPost makes a post, a draft under a slug that is the caller's alone, and changes it
	// as ChangePost does. change is called first with a draft that has nothing but that
	// slug: the title is made of what it returns. AddPost may be called again with the slug,
	// also at the same moment: then it changes the post that was made first, and deletes
	// others that begin with the slug and are drafts. isFirst says that nobody is known to
	// have called it with the slug, so that it need not look for that post beforehand. made
	// is called with the ID before the post is changed, and stops that with an error, which
	// is returned. Other errors: ErrNoPost, if the post was deleted after that, *Refusal.
	AddPost(ctx context.Context, slug string, isFirst bool, change func(EventPost) EventPost, made func(id string) error) (EventPost, error)

	// DeleteDrafts deletes the drafts whose slug begins with one that AddPost was given,
	// but for the post with an ID.
	DeleteDrafts(ctx context.Context, slug, except string) error

	// EventPosts finds posts by their IDs. Posts that do not exist are left out.
	EventPosts(ctx context.Context, ids []string) (map[string]EventPost, error)

	// ChangedPosts lists the posts that were changed since a time, the earliest change first: at
	// most 100, or all that were changed in the first second if these are more.
	ChangedPosts(ctx context.Context, since time.Time) ([]EventPost, error)

	// ChangePost changes a post to what change returns for it, and returns it as it is then.
	// change is called again if somebody else changes the post at the same moment, or the
	// change takes several requests. Only what differs is changed, and of the text only Card.
	// A tag that the platform does not have is made. Publishing a post sends no newsletter.
	// A slug that another post has is kept with the platform's number. An empty slug or
	// status stays as it is. Errors: ErrNoPost, *Refusal.
	ChangePost(ctx context.Context, id string, change func(EventPost) EventPost) (EventPost, error)

	// PostLimits says how long the texts of a post may be.
	PostLimits() PostLimits

	// Publication reads the settings of the publication anew. Settings that are missing or not
	// valid are "".
	Publication(ctx context.Context) (Publication, error)

	// Labels lists the names of members' labels that contain a text, sorted by name, at most 100.
	Labels(ctx context.Context, text string) ([]string, error)

	// MembersPage is the page of the admin, behind the admin's path, that lists the members who have a label. It is "" if there
	// is no such label.
	MembersPage(ctx context.Context, label string) (string, error)
}

// Publication is a publication as its staff have set it. What they have not set as they should
// is "".
type Publication struct {
	Title    string // what readers know it by
	URL      string // of its homepage
	Language string // a BCP 47 tag
	TimeZone string // an IANA name
	Icon     string // the URL of its icon, "" for none
	Accent   string // its colour, such as #ff1a75, "" for none
}

// EventPost is a post that shows an event.
type EventPost struct {
	ID      string
	Title   string
	Slug    string // one that is taken gets a number; for an empty one, the title
	Excerpt string // "" for none
	Picture string // the URL of its picture, "" for none
	Alt     string // what the picture shows, "" for nothing
	Status  string // Published, Draft, Sent, Scheduled, or another one

	// Template is the theme's template that shows it, without the extension. "" is the
	// default one.
	Template string

	// Head is HTML in the head of its page, and Foot at the end of its body.
	Head, Foot string

	// Cards are parts of its text: the HTML of each card that has a lychgate-event element. Only read.
	Cards []string

	// Card is the one of Cards that is changed, "" for none: the first, or the one at Own. One that is added stands
	// before the rest.
	Card string
	Own  int

	// HasText means that the text was read, as it is for ChangePost, unless it is too long or in a form that has no
	// such cards. Otherwise Card says nothing, and is not changed.
	HasText bool

	// IsForAll means that everybody may read its text; only read.
	IsForAll bool

	// Tags are the names of its tags, in their order.
	Tags []string

	// Author is the ID of the member of the staff in whose name AddPost makes it, "" for the
	// owner of the publication. It is not read.
	Author string

	URL       string // of its page, or of its preview while it is not published; only read
	Edit      string // where staff edit it, behind the path of the platform's admin; only read
	UpdatedAt time.Time

	// PublishAt is when a Scheduled post is published, zero for others; only read.
	PublishAt time.Time
}

// These are statuses of posts that readers do not find.
const (
	Draft = "draft"
	Sent  = "sent" // by email only

	Scheduled = "scheduled" // published at PublishAt
)

// PostLimits are how long the texts of a post may be, in code points, and its head and foot in
// bytes.
type PostLimits struct{ Title, Slug, Excerpt, Picture, Alt, Template, Head, Foot, Tag int }
