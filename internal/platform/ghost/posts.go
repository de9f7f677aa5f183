package ghost

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// post is a post on the wire.
type post struct {
	ID          string     `json:"id,omitempty"`
	Title       string     `json:"title,omitempty"`
	Status      string     `json:"status,omitempty"`
	Picture     string     `json:"feature_image,omitempty"`
	PublishedAt *time.Time `json:"published_at,omitempty"`
	UpdatedAt   string     `json:"updated_at,omitempty"` // as Ghost writes it, for what is sent back
	Tags        []tag      `json:"tags"`
	Authors     []author   `json:"authors,omitempty"`
}

type author struct {
	Name string `json:"name"`
}

// tag is a tag on the wire.
type tag struct {
	ID         string `json:"id,omitempty"`
	Name       string `json:"name,omitempty"`
	Slug       string `json:"slug,omitempty"`
	Visibility string `json:"visibility,omitempty"`
}

// posts and tags are the envelopes of requests and responses.
type posts struct {
	Posts []post `json:"posts"`
	Meta  *meta  `json:"meta,omitempty"`
}

type tags struct {
	Tags []tag `json:"tags"`
}

const (
	// postFields are what is asked of a post: not its text.
	postFields = "id,title,status,feature_image,published_at,updated_at"

	// maxPage is how many posts or tags Ghost 6 returns at most.
	maxPage = 100

	// manyCarriers is how many posts of a full response carry a tag that is asked for alone.
	manyCarriers = 10

	// maxNames bounds the names of tags that one request asks for, in bytes. Node takes 16
	// KiB of headers, and the address is one.
	maxNames = 8 << 10
)

// postClient finds the posts of a Ghost, and moves tags between them.
type postClient struct{ api }

// What carries any of the tags is read at once, and
// what carries one alone only if there is more than fits into a response.
func (c *postClient) Tagged(ctx context.Context, names []string, most int) (map[string]platform.Tagged, error) {
	carried := make(map[string]platform.Tagged)
	for len(names) > 0 {
		n := fitting(names)
		known, err := c.findTags(ctx, names[:n])
		if err != nil {
			return nil, err
		}
		if err := c.taggedWith(ctx, known, most, carried); err != nil {
			return nil, err
		}
		names = names[n:]
	}
	return carried, nil
}

// fitting is how many names of tags fit into the URL of one request, at least one.
func fitting(names []string) int {
	n, size := 0, 0
	for n < min(len(names), maxPage) && (n == 0 || size+len(url.QueryEscape(quote(names[n]))) <= maxNames) {
		size += len(url.QueryEscape(quote(names[n])))
		n++
	}
	return n
}

// taggedWith adds to carried what carries each of the known tags.
func (c *postClient) taggedWith(ctx context.Context, known map[string]tag, most int, carried map[string]platform.Tagged) error {
	if len(known) == 0 {
		return nil
	}
	var ids []string
	for _, t := range known {
		ids = append(ids, t.ID)
	}
	all, total, err := c.listPosts(ctx, "tags.id:"+oneOf(ids), maxPage)
	if err != nil {
		return err
	}
	publishedFirst(all)
	for name, t := range known {
		found := platform.Tagged{IsInternal: t.Visibility == "internal"}
		for _, p := range all {
			if !p.carries(t) {
				continue
			}
			if found.Total++; found.Total <= most {
				found.Posts = append(found.Posts, p.plain())
			}
		}
		carried[name] = found
	}
	if total <= len(all) {
		return nil
	}

	// The response is full. Tags that many posts carry are asked for alone, so that the
	// others may fit into one.
	rest := maps.Clone(known)
	maps.DeleteFunc(rest, func(name string, _ tag) bool { return carried[name].Total >= max(most, manyCarriers) })
	if len(rest) == len(known) {
		clear(rest)
	}
	for name, t := range known {
		if _, ok := rest[name]; ok {
			continue
		}
		some, count, err := c.carriers(ctx, t, most)
		if err != nil {
			return err
		}
		found := platform.Tagged{Total: count, IsInternal: t.Visibility == "internal"}
		for _, p := range some {
			found.Posts = append(found.Posts, p.plain())
		}
		carried[name] = found
	}
	return c.taggedWith(ctx, rest, most, carried)
}

// carriers puts published posts first, since scheduled ones are newer. The count is of all posts
// with the tag.
func (c *postClient) carriers(ctx context.Context, t tag, most int) ([]post, int, error) {
	filter := "tags.id:" + oneOf([]string{t.ID})
	some, count, err := c.listPosts(ctx, filter, most)
	if err != nil || count <= len(some) || !slices.ContainsFunc(some, post.isHidden) {
		publishedFirst(some)
		return some, count, err
	}
	published, _, err := c.listPosts(ctx, filter+"+status:published", most)
	hidden := slices.DeleteFunc(some, func(p post) bool { return !p.isHidden() })
	published = append(published, hidden...)
	return published[:min(len(published), most)], count, err
}

// publishedFirst puts the posts that a homepage can show before others: a scheduled one is
// newer than they are.
func publishedFirst(list []post) {
	slices.SortStableFunc(list, func(a, b post) int {
		switch {
		case a.isHidden() == b.isHidden():
			return 0
		case b.isHidden():
			return -1
		}
		return 1
	})
}

// isHidden reports whether readers do not find the post.
func (p post) isHidden() bool { return p.Status != "published" }

func (c *postClient) Post(ctx context.Context, id string) (platform.Post, error) {
	p, err := c.getPost(ctx, id)
	if err != nil {
		return platform.Post{}, err
	}
	return p.plain(), nil
}

func (c *postClient) Tag(ctx context.Context, id, name string) error {
	if !mayBeTag(name) {
		return &platform.Refusal{Reason: "Ghost cannot have the tag of this slot: it is too long, or ends with a backslash."}
	}
	known, err := c.findTags(ctx, []string{name})
	if err != nil {
		return err
	}
	wanted, ok := known[name]
	if !ok {
		if _, err := c.getPost(ctx, id); err != nil { // for which no tag is made
			return err
		}
		if wanted, err = c.makeTag(ctx, name); err != nil {
			return err
		}
	}
	return c.retag(ctx, id, func(p post) []tag {
		if p.carries(wanted) {
			return p.Tags
		}
		return append(slices.Clip(p.Tags), wanted)
	})
}

func (c *postClient) Untag(ctx context.Context, id, name string) error {
	known, err := c.findTags(ctx, []string{name})
	if err != nil {
		return err
	}
	unwanted, ok := known[name]
	if !ok {
		return nil
	}
	return c.retag(ctx, id, func(p post) []tag {
		return slices.DeleteFunc(slices.Clone(p.Tags), func(t tag) bool { return t.ID == unwanted.ID })
	})
}

// maxCollisions bounds how often a post is read anew that somebody else changes.
const maxCollisions = 5

// isCollision reports whether Ghost changed nothing because somebody else changed the post,
// or posts with the same tags, at the same moment.
func isCollision(err error) bool {
	response, ok := errors.AsType[*Error](err)
	return ok && (response.Status == http.StatusConflict || response.Code == relationRefused)
}

// retag changes the tags of a post, unless they are as they should be. Ghost takes all
// tags of a post at once, so they are read just before.
func (c *postClient) retag(ctx context.Context, id string, change func(post) []tag) error {
	for tries := 1; ; tries++ {
		p, err := c.getPost(ctx, id)
		if err != nil {
			return err
		}
		changed := change(p)
		if slices.Equal(changed, p.Tags) {
			return nil
		}
		update := post{UpdatedAt: p.UpdatedAt, Tags: make([]tag, 0, len(changed))}
		for _, t := range changed {
			update.Tags = append(update.Tags, tag{ID: t.ID})
		}
		err = c.call(ctx, http.MethodPut, "/posts/"+url.PathEscape(id)+"/", nil, posts{Posts: []post{update}}, nil)
		if isCollision(err) && tries < maxCollisions {
			continue
		}
		return noPost(err)
	}
}

// noPost turns the error of a member that is not there into that of a post.
func noPost(err error) error {
	if errors.Is(err, platform.ErrNotFound) {
		return platform.ErrNoPost
	}
	return err
}

func (c *postClient) getPost(ctx context.Context, id string) (post, error) {
	if !isID(id) {
		return post{}, platform.ErrNoPost
	}
	var response posts
	query := url.Values{"fields": {postFields}, "include": {"tags,authors"}}
	if err := c.call(ctx, http.MethodGet, "/posts/"+id+"/", query, nil, &response); err != nil {
		return post{}, noPost(err)
	}
	if len(response.Posts) != 1 {
		return post{}, &Error{Status: http.StatusOK, Message: "without a post"}
	}
	return response.Posts[0], nil
}

// The newest posts come first. The total counts all that the filter matches.
func (c *postClient) listPosts(ctx context.Context, filter string, most int) ([]post, int, error) {
	var response posts
	query := url.Values{
		"filter": {filter}, "fields": {postFields}, "include": {"tags,authors"},
		"order": {"published_at desc,id desc"}, "limit": {strconv.Itoa(min(most, maxPage))},
	}
	if err := c.call(ctx, http.MethodGet, "/posts/", query, nil, &response); err != nil {
		return nil, 0, err
	}
	total := len(response.Posts)
	if response.Meta != nil && response.Meta.Pagination.Total != nil {
		total = *response.Meta.Pagination.Total
	}
	return response.Posts[:min(len(response.Posts), most)], total, nil
}

// slugLike matches what Ghost leaves as it is when it makes a slug of it.
var slugLike = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// internal is what the slugs of internal tags begin with. Their names begin with #.
const internal = "hash-"

// tagName is the name that Ghost has of a tag: #hero for hash-hero.
func tagName(name string) string {
	name = strings.TrimSpace(name)
	if len(name) >= len(internal) && strings.EqualFold(name[:len(internal)], internal) {
		return "#" + name[len(internal):]
	}
	return name
}

// tagSlug is "" for names whose slug only Ghost can tell, such as those with accents.
func tagSlug(name string) string {
	slug := strings.ToLower(tagName(name))
	if rest, isInternal := strings.CutPrefix(slug, "#"); isInternal {
		slug = internal + rest
	}
	if !slugLike.MatchString(slug) {
		return ""
	}
	return slug
}

// maxTag is how long the name of a tag may be in Ghost, in code points.
const maxTag = 191

// mayBeTag reports whether Ghost can have a tag, and be asked for it.
func mayBeTag(name string) bool {
	return strings.TrimSpace(name) != "" && utf8.RuneCountInString(name) <= maxTag && !strings.HasSuffix(strings.TrimSpace(name), `\`) // see quote
}

// The keys are the names as they were passed. Themes find a tag by its slug, so a name counts only
// if its slug is not known.
func (c *postClient) findTags(ctx context.Context, names []string) (map[string]tag, error) {
	var slugs, plain, filter []string
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !mayBeTag(name) })
	if len(names) == 0 {
		return nil, nil
	}
	for _, name := range names {
		if slug := tagSlug(name); slug != "" {
			slugs = append(slugs, slug)
		} else {
			plain = append(plain, tagName(name))
		}
	}
	if len(slugs) > 0 {
		filter = append(filter, "slug:"+oneOf(slugs))
	}
	if len(plain) > 0 {
		filter = append(filter, "name:"+oneOf(plain))
	}
	list, err := c.listTags(ctx, filter)
	if err != nil {
		return nil, err
	}
	known := make(map[string]tag)
	for _, name := range names {
		slug := tagSlug(name)
		for _, t := range list {
			if t.Slug == slug || slug == "" && fold.Label(t.Name) == fold.Label(tagName(name)) {
				known[name] = t
			}
		}
	}
	return known, nil
}

// tagsCalled finds tags by their name, or by the slug that the name gives. These may be several: if
// there is a tag news, Ghost gives a new tag News the slug news-2.
func (c *postClient) tagsCalled(ctx context.Context, name string) (ids []string, err error) {
	if !mayBeTag(name) {
		return nil, nil
	}
	name = tagName(name)
	slug := tagSlug(name)
	filter := []string{"(name:~^" + quote(name) + "+name:~$" + quote(name) + ")"} // as name: is, but without case
	if slug != "" {
		filter = append(filter, "slug:"+quote(slug))
	}
	list, err := c.listTags(ctx, filter)
	for _, t := range list {
		if t.Slug == slug || fold.Label(t.Name) == fold.Label(name) {
			ids = append(ids, t.ID)
		}
	}
	return ids, err
}

// listTags combines the filters with OR, and reads at most maxPage tags.
func (c *postClient) listTags(ctx context.Context, filters []string) ([]tag, error) {
	var response tags
	query := url.Values{"filter": {strings.Join(filters, ",")}, "fields": {"id,name,slug,visibility"}, "limit": {strconv.Itoa(maxPage)}}
	err := c.call(ctx, http.MethodGet, "/tags/", query, nil, &response)
	return response.Tags, err
}

// makeTag makes a tag. Where others make the same one at that moment, all get the one that
// was first: Ghost gives the rest another slug, which are deleted again, or, with MySQL,
// answers 500.
func (c *postClient) makeTag(ctx context.Context, name string) (tag, error) {
	made, err := c.addTag(ctx, name)
	slug := tagSlug(name)
	if err == nil && (slug == "" || made.Slug == slug) {
		return made, nil
	}
	if response, ok := errors.AsType[*Error](err); err != nil && (!ok || response.Status != http.StatusInternalServerError) {
		return tag{}, err
	}
	known, findErr := c.findTags(ctx, []string{name})
	first, ok := known[name]
	switch {
	case err == nil && findErr != nil:
		return tag{}, findErr
	case !ok || first.ID == made.ID:
		return made, err
	case err != nil:
		return first, nil //nolint:nilerr // the tag is there
	}
	if err := c.call(ctx, http.MethodDelete, "/tags/"+url.PathEscape(made.ID)+"/", nil, nil, nil); err != nil && !errors.Is(err, platform.ErrNotFound) {
		return tag{}, err
	}
	return first, nil
}

func (c *postClient) addTag(ctx context.Context, name string) (tag, error) {
	t := tag{Name: tagName(name), Slug: tagSlug(name)}
	var response tags
	if err := c.call(ctx, http.MethodPost, "/tags/", nil, tags{[]tag{t}}, &response); err != nil {
		return tag{}, err
	}
	if len(response.Tags) != 1 {
		return tag{}, &Error{Status: http.StatusCreated, Message: "without a tag"}
	}
	return response.Tags[0], nil
}

func (p post) carries(wanted tag) bool {
	return slices.ContainsFunc(p.Tags, func(t tag) bool { return t.ID == wanted.ID })
}

// What is kept of a post is bounded, in code points and authors: a page may have thousands.
// Titles have up to 255 in Ghost, and addresses 2,000.
const (
	maxTitle   = 300
	maxAddress = 2000
	maxAuthors = 20
)

func (p post) plain() platform.Post {
	id := clip.Text(p.ID, maxName)
	plain := platform.Post{ID: id, Title: clip.Text(p.Title, maxTitle), Status: clip.Text(p.Status, maxName), Edit: "/#/editor/post/" + id}
	if len(p.Picture) <= maxAddress {
		plain.Picture = p.Picture
	}
	for _, a := range p.Authors[:min(len(p.Authors), maxAuthors)] {
		plain.Authors = append(plain.Authors, clip.Text(a.Name, maxName))
	}
	if p.PublishedAt != nil {
		plain.PublishedAt = *p.PublishedAt
	}
	if at, err := time.Parse(time.RFC3339, p.UpdatedAt); err == nil {
		plain.UpdatedAt = at
	}
	plain.Title = cmp.Or(plain.Title, "(Untitled)")
	return plain
}
