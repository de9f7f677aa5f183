// Package membertest has an edge with one site for the tests of members and its
// parts. Its platform fails on request.
package membertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/platform"
)

// Platform keeps members as Ghost does, and fails on request in ways that a real one
// cannot be made to.
type Platform struct {
	Mu      sync.Mutex
	Members map[string]platform.Member
	URLs    []string // that webhook events are sent to
	next    int

	// fault is called before each request; its error is returned to the caller. If
	// after is set, the request takes effect all the same.
	fault func(method string) error
	after bool
}

// ErrDown is a platform that cannot be reached.
var ErrDown = errors.New("connection refused")

// NewPlatform makes a Platform without members.
func NewPlatform() *Platform { return &Platform{Members: map[string]platform.Member{}} }

func (p *Platform) do(method string, change func() error) error {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	var fault error
	if p.fault != nil {
		fault = p.fault(method)
	}
	if fault != nil && !p.after {
		return fault
	}
	return errors.Join(fault, change())
}

// Create implements [platform.Platform].
func (p *Platform) Create(_ context.Context, m platform.Member) (platform.Member, error) {
	err := p.do("create", func() error {
		if p.taken(m.Email, "") {
			return &platform.Refusal{Reason: "Member already exists.", Taken: true}
		}
		if refuses(m) {
			return &platform.Refusal{Reason: "Ghost does not like it."}
		}
		p.next++
		m.ID, m.Status, m.CreatedAt = fmt.Sprint("p-", p.next), "free", time.Now()
		p.Members[m.ID] = m
		return nil
	})
	return m, err
}

// refuses reports whether the platform takes a member never.
func refuses(m platform.Member) bool {
	return strings.HasPrefix(m.Email, "refused") || m.Note == "refused"
}

// Update implements [platform.Platform].
func (p *Platform) Update(_ context.Context, id string, c platform.Change) (m platform.Member, err error) {
	err = p.do("update", func() error {
		var there bool
		if m, there = p.Members[id]; !there {
			return platform.ErrNotFound
		}
		if c.Email != nil {
			if m.Email = *c.Email; p.taken(m.Email, id) {
				return &platform.Refusal{Reason: "Ghost does not like it."}
			}
		}
		if c.Name != nil {
			m.Name = *c.Name
		}
		if c.Note != nil {
			m.Note = *c.Note
		}
		if c.Labels != nil {
			m.Labels = *c.Labels
		}
		if c.Subscription != nil {
			m.Subscribed, m.Newsletters = c.Subscription.Subscribed, c.Subscription.Newsletters
		}
		if refuses(m) {
			return &platform.Refusal{Reason: "Ghost does not like it."}
		}
		p.Members[id] = m
		return nil
	})
	return m, err
}

// Delete implements [platform.Platform].
func (p *Platform) Delete(_ context.Context, id string) error {
	return p.do("delete", func() error {
		if _, there := p.Members[id]; !there {
			return platform.ErrNotFound
		}
		delete(p.Members, id)
		return nil
	})
}

// FindByEmail implements [platform.Platform].
func (p *Platform) FindByEmail(_ context.Context, email string) (m platform.Member, err error) {
	err = p.do("find", func() error {
		for _, m = range p.Members {
			if strings.EqualFold(m.Email, email) {
				return nil
			}
		}
		m = platform.Member{}
		return platform.ErrNotFound
	})
	return m, err
}

// Get implements [platform.Platform].
func (p *Platform) Get(_ context.Context, id string) (m platform.Member, err error) {
	err = p.do("get", func() error {
		var there bool
		if m, there = p.Members[id]; !there {
			return platform.ErrNotFound
		}
		return nil
	})
	return m, err
}

// GetAll implements [platform.Platform].
func (p *Platform) GetAll(_ context.Context, ids []string) (list []platform.Member, err error) {
	err = p.do("get", func() error {
		for _, id := range ids {
			if m, there := p.Members[id]; there {
				list = append(list, m)
			}
		}
		return nil
	})
	return list, err
}

// Count implements [platform.Platform].
func (p *Platform) Count(context.Context) (n int, err error) {
	err = p.do("count", func() error {
		n = len(p.Members)
		return nil
	})
	return n, err
}

// List implements [platform.Platform], with pages of three.
func (p *Platform) List(_ context.Context, after string, since time.Time) (page []platform.Member, total int, err error) {
	err = p.do("list", func() error {
		for _, id := range slices.Sorted(maps.Keys(p.Members)) {
			if m := p.Members[id]; id > after && !m.UpdatedAt.Before(since) {
				if total++; total <= 3 {
					page = append(page, m)
				}
			}
		}
		return nil
	})
	return page, total, err
}

// Identity implements [platform.EventSource].
func (p *Platform) Identity() string { return "faulty" }

// Subscribe implements [platform.EventSource].
func (p *Platform) Subscribe(_ context.Context, url string) error {
	return p.do("subscribe", func() error {
		p.URLs = append(p.URLs, url)
		return nil
	})
}

// SignatureHeader implements [platform.EventSource].
func (p *Platform) SignatureHeader() string { return "Signature" }

// ReadEvent implements [platform.EventSource]. A valid signature is the URL itself.
func (p *Platform) ReadEvent(url, signature string, body []byte, _ time.Time) (string, error) {
	if signature != url {
		return "", platform.ErrForged
	}
	return string(body), nil
}

// Staff changes a member as the platform's staff does, and returns it.
func (p *Platform) Staff(id string, change func(*platform.Member)) platform.Member {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	m := p.Members[id]
	m.ID = id
	change(&m)
	p.Members[id] = m
	return m
}

var _ platform.EventSource = (*Platform)(nil)

func (p *Platform) taken(email, but string) bool {
	for id, m := range p.Members {
		// As Ghost on SQLite does; for one address, as Ghost on MySQL.
		if id != but && (m.Email == email || m.Email == "jane@folded.example" && email == "jané@folded.example") {
			return true
		}
	}
	return false
}

// IDs returns the IDs of all members.
func (p *Platform) IDs() []string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Sorted(maps.Keys(p.Members))
}

// Emails returns the members' emails and names on the platform.
func (p *Platform) Emails() []string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	list := []string{}
	for _, m := range p.Members {
		list = append(list, m.Email+" "+m.Name)
	}
	slices.Sort(list)
	return list
}

// Set sets the fault that is called before each request. If after is set, the request
// takes effect all the same.
func (p *Platform) Set(fault func(string) error, after bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.fault, p.after = fault, after
}

// Break makes each request fail with an error.
func (p *Platform) Break(err error) { p.Set(func(string) error { return err }, false) }

// LoseAnswers leaves all requests but FindByEmail, Get and GetAll without an answer.
// If made is set, they take effect.
func (p *Platform) LoseAnswers(made bool) {
	p.Set(func(method string) error {
		if method == "find" || method == "get" {
			return nil
		}
		return context.DeadlineExceeded
	}, made)
}

// Fix ends all faults.
func (p *Platform) Fix() { p.Set(nil, false) }
