package platform

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
)

// PostHost is a Platform with posts, which carry tags. A tag is called by its name or
// its slug, as themes call it: #hero or hash-hero.
//
// Calls are bounded in time, and may have had their effect when they fail, as those of
// [Platform].
type PostHost interface {
	// Tagged finds the posts that carry each of some tags, up to most of each, from 1 to 100. The
	// keys are the tags as they were passed. A tag that the platform does not have is carried by no
	// post.
	Tagged(ctx context.Context, tags []string, most int) (map[string]Tagged, error)

	// Published searches published posts, the newest first.
	Published(ctx context.Context, search PostSearch) ([]Post, error)

	// Post fails with ErrNoPost if the post does not exist.
	Post(ctx context.Context, id string) (Post, error)

	// Tag gives a post a tag, behind those that it has. The tag is made if there is none.
	// A post that carries it stays as it is. Errors: ErrNoPost, *Refusal.
	Tag(ctx context.Context, id, tag string) error

	// Untag takes a tag from a post. A post that does not carry it stays as it is. Errors:
	// ErrNoPost, *Refusal.
	Untag(ctx context.Context, id, tag string) error
}

// Tagged is what carries a tag.
type Tagged struct {
	Posts []Post // published ones first, of these the newest
	Total int    // of the posts that there are

	// IsInternal means that readers do not see the tag.
	IsInternal bool
}

// Post is a post as an editor chooses one.
type Post struct {
	ID          string
	Title       string
	Status      string // Published, or scheduled, draft or sent
	Picture     string // the URL of its picture, "" for none
	Authors     []string
	PublishedAt time.Time // zero if it never was; later than now if it is scheduled
	UpdatedAt   time.Time // zero if the platform does not say
	Edit        string    // where staff edit it, behind the path of the platform's admin
}

// Published is the status of a post that readers find.
const Published = "published"

// PostSearch says which posts are looked for.
type PostSearch struct {
	Words []string // each of them in the title
	Tag   string   // carried by them, "" for any
	Most  int      // that are returned, from 1 to 100
}

// ErrNoPost means that the platform has no such post.
var ErrNoPost = errcode.New(errcode.NotFound, "the platform has no such post", "The post does not exist any more. Choose another.")
