package ghost

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// eventPost is a post that shows an event, on the wire. Its text is asked for only to be changed.
type eventPost struct {
	ID         string `json:"id"`
	Title      string `json:"title"`
	Slug       string `json:"slug"`
	Excerpt    string `json:"custom_excerpt"`
	Picture    string `json:"feature_image"`
	Alt        string `json:"feature_image_alt"`
	Status     string `json:"status"`
	Template   string `json:"custom_template"`
	Head       string `json:"codeinjection_head"`
	Foot       string `json:"codeinjection_foot"`
	Text       string `json:"lexical"`
	Visibility string `json:"visibility"`
	URL        string `json:"url"`
	UpdatedAt  string `json:"updated_at"` // as Ghost writes it, for what is sent back
	PublishAt  string `json:"published_at"`
	Tags       []tag  `json:"tags"`

	isSettled bool // a change from now on gets another updated_at
}

// eventPosts is the envelope of responses.
type eventPosts struct {
	Posts []eventPost `json:"posts"`
}

// updates is the envelope of requests.
type updates struct {
	Posts []map[string]any `json:"posts"`
}

// eventFields are what is asked of a post. Ghost makes the address of a draft of its UUID,
// and leaves that out of the address unless it is asked for too.
const eventFields = "id,uuid,title,slug,custom_excerpt,feature_image,feature_image_alt,status,custom_template,codeinjection_head,codeinjection_foot,visibility,published_at,updated_at,url"

// withoutText is the shortest response to a request that makes or changes a post. It asks
// for no relations: with include=tags alone, Ghost sends the newsletter a second time that
// a post was sent with, as it does not look for the email then.
var withoutText = url.Values{"formats": {"plaintext"}}

// postLimits are what Ghost 5.130.4 and 6.22.0 keep. They take a slug of up to 191, of which
// they keep 185, and a head and a foot of 65535 code points, of which MySQL keeps as many bytes.
var postLimits = platform.PostLimits{Title: 255, Slug: 185, Excerpt: 300, Picture: 2000, Alt: 191, Template: 100, Head: 65535, Foot: 65535, Tag: maxTag}

// eventClient makes and changes the posts of a Ghost that show events.
type eventClient struct{ postClient }

func (*eventClient) PostLimits() platform.PostLimits { return postLimits }

// Head and foot are not clipped: a part of them must not be sent back as the whole.
func (p eventPost) event() platform.EventPost {
	id := clip.Text(p.ID, maxName)
	e := platform.EventPost{
		ID:       id,
		Title:    atMost(p.Title, postLimits.Title),
		Slug:     atMost(p.Slug, maxName),
		Excerpt:  atMost(p.Excerpt, postLimits.Excerpt),
		Alt:      atMost(p.Alt, postLimits.Alt),
		Status:   atMost(p.Status, maxName),
		Template: atMost(p.Template, postLimits.Template),
		Head:     withoutNUL(p.Head),
		Foot:     withoutNUL(p.Foot),
		IsForAll: p.Visibility == "public",
		Edit:     "/#/editor/post/" + id,
	}
	if utf8.RuneCountInString(p.Picture) <= postLimits.Picture {
		e.Picture = withoutNUL(p.Picture)
	}
	if len(p.URL) <= maxAddress {
		e.URL = withoutNUL(p.URL)
	}
	if cards, _, ok := cardsIn(p.Text); ok {
		for _, card := range cards {
			e.Cards = append(e.Cards, card.html)
		}
		e.Card, e.HasText = cardAt(e, 0), true
	}
	for _, t := range p.Tags {
		e.Tags = append(e.Tags, atMost(t.Name, maxTag))
	}
	if at, err := time.Parse(time.RFC3339, p.UpdatedAt); err == nil {
		e.UpdatedAt = at.UTC()
	}
	if at, err := time.Parse(time.RFC3339, p.PublishAt); err == nil && p.Status == platform.Scheduled {
		e.PublishAt = at.UTC()
	}
	return e
}

// atMost clips only texts that are longer than Ghost's own limit, and removes U+0000.
func atMost(text string, most int) string {
	if text = withoutNUL(text); utf8.RuneCountInString(text) > most {
		return clip.Text(text, most)
	}
	return text
}

// isNumbered reports whether Ghost may have made a slug of another that was taken.
func isNumbered(slug, of string) bool {
	rest, ok := strings.CutPrefix(slug, of+"-")
	return ok && number.MatchString(rest)
}

var number = regexp.MustCompile(`^[0-9]{1,6}$`)

func (c *eventClient) EventPosts(ctx context.Context, ids []string) (map[string]platform.EventPost, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !isID(id) })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found := make(map[string]platform.EventPost)
	for size := maxPage; len(ids) > 0; {
		size = min(size, len(ids))
		list, err := c.listEventPosts(ctx, "id:"+oneOf(ids[:size]), "id asc", size)
		if errors.Is(err, errTooLong) && size > 1 {
			size /= 2 // posts with long heads
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			if !slices.Contains(ids[:size], p.ID) {
				return nil, errors.New("asking Ghost: it answers with posts that it was not asked for; does something in front of it drop the query from a request?")
			}
			found[p.ID] = p.event()
		}
		ids = ids[size:]
	}
	return found, nil
}

// maxSecond bounds the posts that are returned because they were changed in one second.
const maxSecond = 2000

// Ghost's times are of seconds. If more posts
// than fit into a response were changed in one, as an import does, more are returned: who asks
// again for what was changed since then would get the same.
func (c *eventClient) ChangedPosts(ctx context.Context, since time.Time) ([]platform.EventPost, error) {
	list, isFull, err := c.changed(ctx, "updated_at:>="+second(since))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	last := list[len(list)-1].event().UpdatedAt
	if isFull && last.Equal(list[0].event().UpdatedAt) {
		within := "updated_at:>=" + second(last) + "+updated_at:<" + second(last.Add(time.Second))
		for isFull && len(list) < maxSecond {
			var more []eventPost
			more, isFull, err = c.changed(ctx, within+"+id:>"+quote(list[len(list)-1].ID))
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	changed := make([]platform.EventPost, 0, len(list))
	for _, p := range list {
		changed = append(changed, p.event())
	}
	return changed, nil
}

// changed lists the posts that match a filter, the earliest change first. isFull means that there
// may be more.
func (c *eventClient) changed(ctx context.Context, filter string) (list []eventPost, isFull bool, err error) {
	for limit := maxPage; ; limit /= 2 {
		list, err = c.listEventPosts(ctx, filter, "updated_at asc,id asc", limit)
		if errors.Is(err, errTooLong) && limit > 1 {
			continue // posts with long heads
		}
		return list, len(list) == limit, err
	}
}

func (c *eventClient) listEventPosts(ctx context.Context, filter, order string, limit int) ([]eventPost, error) {
	var response eventPosts
	query := url.Values{"filter": {filter}, "fields": {eventFields}, "include": {"tags"}, "order": {order}, "limit": {strconv.Itoa(limit)}}
	if err := c.call(ctx, http.MethodGet, "/posts/", query, nil, &response); err != nil {
		return nil, err
	}
	for i := range response.Posts {
		response.Posts[i].Text = "" // which nobody asked for
	}
	return response.Posts, nil
}

// getEventPost reads a post with its text, unless that is too long.
func (c *eventClient) getEventPost(ctx context.Context, id string) (eventPost, error) {
	if !isID(id) {
		return eventPost{}, platform.ErrNoPost
	}
	var response eventPosts
	began := time.Now()
	query := url.Values{"fields": {eventFields + ",lexical"}, "include": {"tags"}}
	header, err := c.callForHeader(ctx, http.MethodGet, "/posts/"+id+"/", query, nil, &response)
	if errors.Is(err, errTooLong) {
		query.Set("fields", eventFields)
		header, err = c.callForHeader(ctx, http.MethodGet, "/posts/"+id+"/", query, nil, &response)
	}
	if err != nil {
		return eventPost{}, noPost(err)
	}
	if len(response.Posts) != 1 || response.Posts[0].ID != id {
		return eventPost{}, &Error{Status: http.StatusOK, Message: "without the post"}
	}
	p := response.Posts[0]
	now, err := http.ParseTime(header.Get("Date"))           // of the response, by a clock that may be a proxy's
	updated, broken := time.Parse(time.RFC3339, p.UpdatedAt) // before Ghost read it
	p.isSettled = err == nil && broken == nil && now.Sub(updated)-time.Since(began) >= settledSpan
	return p, nil
}

// timeZone is how names of time zones look.
var timeZone = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+/-]{0,99}$`)

// language is how language tags look (RFC 5646, section 2.1).
var language = regexp.MustCompile(`^[A-Za-z0-9]{1,8}([-_][A-Za-z0-9]{1,8}){0,3}$`)

// webAddress is how the address of an icon looks, and colour that of a publication.
var (
	webAddress = regexp.MustCompile(`^https?://[^\s"'<>]+$`)
	colour     = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)
)

// filled is how a title looks.
var filled = regexp.MustCompile(`\S`)

// A Ghost that was set up long ago calls the language lang. The address is not among the settings.
func (c *eventClient) Publication(ctx context.Context) (platform.Publication, error) {
	var response struct {
		Settings []setting `json:"settings"`
	}
	if err := c.call(ctx, http.MethodGet, "/settings/", nil, nil, &response); err != nil {
		return platform.Publication{}, err
	}
	if response.Settings == nil { // else posts would be written anew in another language
		return platform.Publication{}, &Error{Status: http.StatusOK, Message: "without settings"}
	}
	var site json.RawMessage
	if err := c.call(ctx, http.MethodGet, sitePath, nil, nil, &site); err != nil {
		return platform.Publication{}, err
	}
	p := platform.Publication{
		Title:    atMost(first(response.Settings, filled, "title"), maxName),
		Language: first(response.Settings, language, "locale", "lang"),
		TimeZone: first(response.Settings, timeZone, "timezone"),
		Icon:     atMost(first(response.Settings, webAddress, "icon"), maxAddress),
		Accent:   first(response.Settings, colour, "accent_color"),
	}
	if address := publicURL(site); address != nil && len(address.String()) <= maxAddress {
		p.URL = address.String()
	}
	return p, nil
}

type setting struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// first takes the keys in their order, and skips values that are not valid.
func first(settings []setting, valid *regexp.Regexp, keys ...string) string {
	for _, key := range keys {
		for _, setting := range settings {
			var value string
			if setting.Key == key && json.Unmarshal(setting.Value, &value) == nil && valid.MatchString(value) {
				return value
			}
		}
	}
	return ""
}

func (c *eventClient) Labels(ctx context.Context, text string) ([]string, error) {
	query := url.Values{"limit": {strconv.Itoa(maxPage)}, "order": {"name asc"}}
	text = strings.TrimRight(strings.ToValidUTF8(text, ""), `\`) // see quote
	if utf8.RuneCountInString(text) > maxTag {
		return nil, nil // no label is as long
	}
	if text != "" {
		query.Set("filter", "name:~"+quote(text))
	}
	var response labels
	if err := c.call(ctx, http.MethodGet, "/labels/", query, nil, &response); err != nil {
		return nil, err
	}
	var names []string
	for _, l := range response.Labels {
		names = append(names, atMost(l.Name, maxTag))
	}
	return names, nil
}

// MembersPage asks for the slug of the label, by which Ghost's admin filters.
func (c *eventClient) MembersPage(ctx context.Context, label string) (string, error) {
	if strings.HasSuffix(label, `\`) { // see quote
		return "", nil
	}
	var response struct {
		Labels []struct {
			Slug string `json:"slug"`
		} `json:"labels"`
	}
	if err := c.call(ctx, http.MethodGet, "/labels/", url.Values{"filter": {"name:" + quote(label)}, "limit": {"1"}}, nil, &response); err != nil {
		return "", err
	}
	if len(response.Labels) == 0 {
		return "", nil
	}
	return "/#/members?" + url.Values{"filter": {"label:[" + response.Labels[0].Slug + "]"}}.Encode(), nil
}
