package ghost

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// member is a member on the wire.
type member struct {
	ID          string        `json:"id,omitempty"`
	UUID        string        `json:"uuid,omitempty"`
	Email       *string       `json:"email,omitempty"`
	Name        *string       `json:"name,omitempty"`
	Note        *string       `json:"note,omitempty"`
	Subscribed  *bool         `json:"subscribed,omitempty"`
	Labels      *[]label      `json:"labels,omitempty"`
	Newsletters *[]newsletter `json:"newsletters,omitempty"`
	Status      string        `json:"status,omitempty"`
	CreatedAt   *time.Time    `json:"created_at,omitempty"`
	UpdatedAt   *time.Time    `json:"updated_at,omitempty"`

	Tiers         []tier         `json:"tiers,omitempty"`
	Subscriptions []subscription `json:"subscriptions,omitempty"`
}

type tier struct {
	ID string `json:"id"`
}

// subscription is a subscription at the payment processor, whose name for the
// tier is the id of the price's tier. A complimentary one has none.
type subscription struct {
	Status string `json:"status"`
	Price  struct {
		Tier tier `json:"tier"`
	} `json:"price"`
}

type newsletter struct {
	ID string `json:"id"`
}

// members is the envelope of requests and responses.
type members struct {
	Members []member `json:"members"`
	Meta    *meta    `json:"meta,omitempty"`
}

type meta struct {
	Pagination struct {
		Total *int `json:"total"`
	} `json:"pagination"`
}

// memberClient reads and changes the members of a Ghost.
type memberClient struct{ labelClient }

func (c *memberClient) Create(ctx context.Context, m platform.Member) (platform.Member, error) {
	if err := c.checkNewsletters(ctx, m.Newsletters); err != nil {
		return platform.Member{}, err
	}
	return c.change(ctx, http.MethodPost, "/members/", toWire(platform.Change{
		Email: &m.Email, Name: &m.Name, Note: &m.Note, Labels: &m.Labels,
		Subscription: &platform.Subscription{Subscribed: m.Subscribed, Newsletters: m.Newsletters},
	}))
}

func (c *memberClient) Update(ctx context.Context, id string, change platform.Change) (platform.Member, error) {
	path := "/members/" + url.PathEscape(id) + "/"
	if s := change.Subscription; s != nil && s.Subscribed {
		if err := c.checkNewsletters(ctx, s.Newsletters); err != nil {
			return platform.Member{}, err
		}
	}
	m, err := c.change(ctx, http.MethodPut, path, toWire(change))
	if s := change.Subscription; s == nil || !s.Subscribed || s.Newsletters != nil || !isInTrouble(err) {
		return m, err
	}
	// Ghost trips over subscribed:true for a member who gets one newsletter that is
	// archived and one that is not. For a member who gets any it would change nothing.
	now, getErr := c.Get(ctx, id)
	if getErr != nil || !now.Subscribed {
		return m, err
	}
	change.Subscription = nil
	if change == (platform.Change{}) {
		return now, nil
	}
	return c.change(ctx, http.MethodPut, path, toWire(change))
}

// isInTrouble reports whether Ghost has responded that it failed.
func isInTrouble(err error) bool {
	response, ok := errors.AsType[*Error](err)
	return ok && response.Status == http.StatusInternalServerError
}

func (c *memberClient) change(ctx context.Context, method, path string, m member) (platform.Member, error) {
	var response members
	send := func() error { return c.call(ctx, method, path, nil, members{Members: []member{m}}, &response) }
	var err error
	if m.Labels == nil || len(*m.Labels) == 0 && method == http.MethodPost {
		err = send()
	} else {
		err = c.label(ctx, m.Labels, send)
	}
	if err != nil {
		return platform.Member{}, err
	}
	return one(response)
}

func (c *memberClient) Delete(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/members/"+url.PathEscape(id)+"/", nil, nil, nil)
}

func (c *memberClient) Get(ctx context.Context, id string) (platform.Member, error) {
	var response members
	query := url.Values{"include": {includes}}
	if err := c.call(ctx, http.MethodGet, "/members/"+url.PathEscape(id)+"/", query, nil, &response); err != nil {
		return platform.Member{}, err
	}
	return one(response)
}

func one(response members) (platform.Member, error) {
	if len(response.Members) != 1 {
		return platform.Member{}, &Error{Status: http.StatusOK, Message: "without a member"}
	}
	return fromWire(response.Members[0]), nil
}

// includes is what responses with members are to have beside what Ghost puts into
// them anyway.
const includes = "tiers"

// List reads pages of 100, which is the most that
// Ghost returns.
func (c *memberClient) List(ctx context.Context, after string, since time.Time) ([]platform.Member, int, error) {
	var filter []string
	if after != "" {
		filter = append(filter, "id:>"+quote(after))
	}
	if !since.IsZero() {
		filter = append(filter, "updated_at:>="+quote(since.UTC().Format(time.DateTime)))
	}
	for limit := pageSize; ; limit /= 2 {
		page, total, err := c.list(ctx, strings.Join(filter, "+"), oldest, limit)
		if errors.Is(err, errTooLong) && limit > 1 {
			continue // members of many long labels
		}
		for i, m := range page {
			if m.ID <= after || i > 0 && m.ID <= page[i-1].ID {
				return nil, 0, errors.New("asking Ghost: its list of members is not in the order that was asked for; does something in front of it drop the query from a request?")
			}
		}
		return page, total, err
	}
}

// pageSize is the most members that Ghost returns at a time.
const pageSize = 100

// Orders of lists.
const oldest, latest = "id asc", "updated_at desc"

// The total counts all that the filter matches.
func (c *memberClient) list(ctx context.Context, filter, order string, limit int) ([]platform.Member, int, error) {
	var response members
	query := url.Values{"limit": {strconv.Itoa(limit)}, "order": {order}, "include": {includes}}
	if filter != "" {
		query.Set("filter", filter)
	}
	if err := c.call(ctx, http.MethodGet, "/members/", query, nil, &response); err != nil {
		return nil, 0, err
	}
	// A member that is missing in a list is removed here, so what only looks like one, such
	// as the response of something in front of Ghost, is none.
	if response.Meta == nil || response.Meta.Pagination.Total == nil {
		return nil, 0, errNoList
	}
	total := *response.Meta.Pagination.Total
	if len(response.Members) < min(limit, total) {
		return nil, 0, errNoList
	}
	list := make([]platform.Member, 0, len(response.Members))
	for _, m := range response.Members {
		list = append(list, fromWire(m))
	}
	return list, total, nil
}

var errNoList = errors.New("asking Ghost: the response is no list of members; is this Ghost's own address?")

func (c *memberClient) GetAll(ctx context.Context, ids []string) ([]platform.Member, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, _, err := c.list(ctx, "id:"+oneOf(ids), oldest, len(ids))
	if slices.ContainsFunc(list, func(m platform.Member) bool { return !slices.Contains(ids, m.ID) }) {
		return nil, errors.New("asking Ghost: it answers with members that it was not asked for; does something in front of it drop the query from a request?")
	}
	return list, err
}

func (c *memberClient) Count(ctx context.Context) (int, platform.Member, error) {
	list, total, err := c.list(ctx, "", latest, 1)
	if err != nil || len(list) == 0 {
		return total, platform.Member{}, err
	}
	return total, list[0], nil
}

// Ghost on SQLite tells emails apart
// by case, but not what they begin with. One that is no longer than that comes
// first in the order. Ghost keeps an internationalized domain in the form that staff
// have given, and its ASCII form for a member who signed up.
func (c *memberClient) FindByEmail(ctx context.Context, email string) (platform.Member, error) {
	var response members
	var filter []string
	for _, form := range emailaddr.Forms(email) {
		filter = append(filter, "email:~^"+quote(form))
	}
	query := url.Values{"filter": {strings.Join(filter, ",")}, "limit": {"100"}, "order": {"email asc"}, "include": {includes}}
	if err := c.call(ctx, http.MethodGet, "/members/", query, nil, &response); err != nil {
		return platform.Member{}, err
	}
	for _, m := range response.Members {
		if m := fromWire(m); m.Email == email {
			return m, nil
		}
	}
	for _, m := range response.Members {
		if m := fromWire(m); emailaddr.Key(m.Email) == emailaddr.Key(email) {
			return m, nil
		}
	}
	return platform.Member{}, platform.ErrNotFound
}

// Ghost looks up a member who signs in by the ASCII form of the domain, in whatever form the
// address was set.
func toWire(c platform.Change) member {
	w := member{Name: c.Name, Note: c.Note}
	if c.Email != nil {
		w.Email = new(emailaddr.ASCII(*c.Email))
	}
	if c.Labels != nil {
		list := make([]label, 0, len(*c.Labels))
		for _, name := range *c.Labels {
			list = append(list, label{Name: name})
		}
		w.Labels = &list
	}
	switch s := c.Subscription; {
	case s == nil:
	case !s.Subscribed:
		w.Newsletters = &[]newsletter{}
	case s.Newsletters != nil:
		list := make([]newsletter, 0, len(s.Newsletters))
		for _, id := range s.Newsletters {
			list = append(list, newsletter{id})
		}
		w.Newsletters = &list
	default:
		w.Subscribed = &s.Subscribed
	}
	return w
}

func fromWire(w member) platform.Member {
	m := platform.Member{
		ID: w.ID, UUID: clip.Text(w.UUID, maxUUID), Email: text(w.Email), Name: text(w.Name), Note: text(w.Note), Status: status(w.Status), TierID: withoutNUL(tierOf(w)),
	}
	if w.Labels != nil {
		for _, l := range *w.Labels {
			m.Labels = append(m.Labels, withoutNUL(l.Name))
		}
	}
	if w.Subscribed != nil {
		m.Subscribed = *w.Subscribed
	}
	if w.Newsletters != nil {
		m.Newsletters = []string{}
		for _, n := range *w.Newsletters {
			m.Newsletters = append(m.Newsletters, n.ID)
		}
	}
	if w.CreatedAt != nil {
		m.CreatedAt = w.CreatedAt.UTC()
	}
	if w.UpdatedAt != nil {
		m.UpdatedAt = w.UpdatedAt.UTC()
	}
	return m
}

// Ghost sends null for texts that were never set.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return withoutNUL(*s)
}

// withoutNUL leaves out U+0000, which Ghost on SQLite may have, and PostgreSQL does
// not take.
func withoutNUL(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// status turns Ghost's status into the members API's.
func status(ghost string) string {
	switch ghost {
	case "comped", "gift": // a gift is paid by somebody else
		return "complimentary"
	case "paid":
		return "paid"
	}
	return "free"
}

// tierOf prefers the payment processor's name for the tier. The processor does not know
// complimentary tiers, so those have Ghost's own ID.
func tierOf(w member) string {
	if status(w.Status) == "free" {
		return ""
	}
	for _, s := range w.Subscriptions {
		// These Ghost counts as active.
		if slices.Contains([]string{"active", "trialing", "unpaid", "past_due"}, s.Status) && s.Price.Tier.ID != "" {
			return s.Price.Tier.ID
		}
	}
	if len(w.Tiers) > 0 {
		return w.Tiers[0].ID
	}
	return ""
}
