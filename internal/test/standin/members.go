package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Member is a member as Ghost has it. The names of its fields in JSON are Ghost's.
type Member struct {
	ID         string    `json:"id"`
	UUID       string    `json:"uuid"`
	Email      string    `json:"email"`
	Name       string    `json:"name"`
	Note       string    `json:"note"`
	Subscribed bool      `json:"subscribed"`
	Labels     []label   `json:"labels"`
	Letters    []letter  `json:"newsletters"`
	Status     string    `json:"status"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

type label struct {
	Name string `json:"name"`
}

type letter struct {
	ID string `json:"id"`
}

// newsletter is the one that a site has, for all who are subscribed.
var newsletter = letter{ID: "0123456789abcdef01234567"}

type envelope struct {
	Members []*Member `json:"members"`
	Meta    *meta     `json:"meta,omitempty"`
}

type meta struct {
	Pagination struct {
		Total int `json:"total"`
	} `json:"pagination"`
}

// site has the members of a site.
type site struct {
	members []*Member // in the order of their IDs
	byID    map[string]*Member
	byUUID  map[string]*Member
	emails  map[string]int // in lower case
	last    time.Time      // when the last one was created
}

func (s *site) add(m *Member) {
	s.members = append(s.members, m) // IDs grow
	s.byID[m.ID], s.byUUID[m.UUID] = m, m
	s.emails[strings.ToLower(m.Email)]++
	s.last = time.Now()
	m.settle()
}

// change changes what a request names.
func (s *site) change(m *Member, fields []byte) error {
	before := *m
	m.Letters = nil
	if err := json.Unmarshal(fields, m); err != nil {
		*m = before
		return err
	}
	m.ID, m.UUID, m.CreatedAt = before.ID, before.UUID, before.CreatedAt
	if m.Letters != nil {
		m.Subscribed = len(m.Letters) > 0
	}
	s.emails[strings.ToLower(before.Email)]--
	s.emails[strings.ToLower(m.Email)]++
	m.settle()
	return nil
}

// settle fills in what follows from other fields.
func (m *Member) settle() {
	m.Status, m.UpdatedAt, m.Letters = "free", time.Now().UTC().Truncate(time.Second), []letter{}
	if m.Subscribed {
		m.Letters = append(m.Letters, newsletter)
	}
	if m.Labels == nil {
		m.Labels = []label{}
	}
}

func (s *site) remove(m *Member) {
	s.members = slices.DeleteFunc(s.members, func(other *Member) bool { return other == m })
	delete(s.byID, m.ID)
	delete(s.byUUID, m.UUID)
	s.emails[strings.ToLower(m.Email)]--
}

// list responds with the members that a filter lets through, in the order of their IDs.
func (s *site) list(w http.ResponseWriter, query url.Values) error {
	passes, err := parseFilter(query.Get("filter"))
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return err
	}
	found := envelope{Members: []*Member{}, Meta: new(meta)}
	for _, m := range s.members {
		if !passes(m) {
			continue
		}
		if found.Meta.Pagination.Total++; len(found.Members) < limit {
			found.Members = append(found.Members, m)
		}
	}
	return json.NewEncoder(w).Encode(found)
}

var (
	// condition is one of a filter: a field, how it is compared, and a value or several. A comma
	// before it means or, and a plus means and.
	condition = regexp.MustCompile(`[,+]?(id|uuid|email|updated_at):(>=|>|~\^|)('(?:[^'\\]|\\.)*'|\[[^\]]*\])`)
	quoted    = regexp.MustCompile(`'((?:[^'\\]|\\.)*)'`)
	escaped   = regexp.MustCompile(`\\(.)`)
)

// parseFilter reads the filters that an edge sends. Those with "or" are of emails alone.
func parseFilter(filter string) (func(*Member) bool, error) {
	if rest := condition.ReplaceAllString(filter, ""); rest != "" {
		return nil, fmt.Errorf("with the filter %s", filter)
	}
	var all, emails []func(*Member) bool
	for _, part := range condition.FindAllStringSubmatch(filter, -1) {
		var values []string
		for _, value := range quoted.FindAllStringSubmatch(part[3], -1) {
			values = append(values, escaped.ReplaceAllString(value[1], "$1"))
		}
		if len(values) == 0 {
			return nil, fmt.Errorf("with the filter %s", filter)
		}
		switch part[1] + part[2] {
		case "id":
			all = append(all, func(m *Member) bool { return slices.Contains(values, m.ID) })
		case "uuid":
			all = append(all, func(m *Member) bool { return slices.Contains(values, m.UUID) })
		case "id>":
			all = append(all, func(m *Member) bool { return m.ID > values[0] })
		case "email~^":
			prefix := strings.ToLower(values[0])
			emails = append(emails, func(m *Member) bool { return strings.HasPrefix(strings.ToLower(m.Email), prefix) })
		case "updated_at>=":
			since, err := time.Parse(time.DateTime, values[0])
			if err != nil {
				return nil, err
			}
			all = append(all, func(m *Member) bool { return !m.UpdatedAt.Before(since) })
		default:
			return nil, fmt.Errorf("with the filter %s", filter)
		}
	}
	return func(m *Member) bool {
		passes := func(check func(*Member) bool) bool { return check(m) }
		fails := func(check func(*Member) bool) bool { return !check(m) }
		return !slices.ContainsFunc(all, fails) && (len(emails) == 0 || slices.ContainsFunc(emails, passes))
	}, nil
}
