package members

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

// faulty is a platform that keeps members as Ghost does, and can be made to
// show what a real one cannot be made to show.
type faulty struct {
	mu      sync.Mutex
	members map[string]platform.Member
	next    int
	urls    []string // that notices are sent to

	// fault is asked before each change is made; an error is what the caller
	// gets. If after is set the change is made all the same.
	fault func(method string) error
	after bool
}

var errDown = errors.New("connection refused")

func newFaulty() *faulty { return &faulty{members: map[string]platform.Member{}} }

func (p *faulty) do(method string, change func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fault error
	if p.fault != nil {
		fault = p.fault(method)
	}
	if fault != nil && !p.after {
		return fault
	}
	return errors.Join(fault, change())
}

func (p *faulty) Create(_ context.Context, m platform.Member) (platform.Member, error) {
	err := p.do("create", func() error {
		if p.taken(m.Email, "") {
			return &platform.Refusal{Reason: "Member already exists.", Taken: true}
		}
		if strings.HasPrefix(m.Email, "refused") {
			return &platform.Refusal{Reason: "Ghost does not like it."}
		}
		p.next++
		m.ID, m.Status, m.CreatedAt = fmt.Sprint("p-", p.next), "free", time.Now()
		p.members[m.ID] = m
		return nil
	})
	return m, err
}

func (p *faulty) Update(_ context.Context, id string, c platform.Change) (m platform.Member, err error) {
	err = p.do("update", func() error {
		var there bool
		if m, there = p.members[id]; !there {
			return platform.ErrNotFound
		}
		if c.Email != nil {
			if m.Email = *c.Email; p.taken(m.Email, id) || strings.HasPrefix(m.Email, "refused") {
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
		p.members[id] = m
		return nil
	})
	return m, err
}

func (p *faulty) Delete(_ context.Context, id string) error {
	return p.do("delete", func() error {
		if _, there := p.members[id]; !there {
			return platform.ErrNotFound
		}
		delete(p.members, id)
		return nil
	})
}

func (p *faulty) FindByEmail(_ context.Context, email string) (m platform.Member, err error) {
	err = p.do("find", func() error {
		for _, m = range p.members {
			if strings.EqualFold(m.Email, email) {
				return nil
			}
		}
		m = platform.Member{}
		return platform.ErrNotFound
	})
	return m, err
}

func (p *faulty) Get(_ context.Context, id string) (m platform.Member, err error) {
	err = p.do("get", func() error {
		var there bool
		if m, there = p.members[id]; !there {
			return platform.ErrNotFound
		}
		return nil
	})
	return m, err
}

func (p *faulty) GetAll(_ context.Context, ids []string) (list []platform.Member, err error) {
	err = p.do("get", func() error {
		for _, id := range ids {
			if m, there := p.members[id]; there {
				list = append(list, m)
			}
		}
		return nil
	})
	return list, err
}

func (p *faulty) Count(context.Context) (n int, err error) {
	err = p.do("count", func() error {
		n = len(p.members)
		return nil
	})
	return n, err
}

// List returns pages of three.
func (p *faulty) List(_ context.Context, after string, since time.Time) (page []platform.Member, total int, err error) {
	err = p.do("list", func() error {
		for _, id := range slices.Sorted(maps.Keys(p.members)) {
			if m := p.members[id]; id > after && !m.UpdatedAt.Before(since) {
				if total++; total <= 3 {
					page = append(page, m)
				}
			}
		}
		return nil
	})
	return page, total, err
}

// Identity is part of what makes it a platform.Notifier.
func (p *faulty) Identity() string { return "faulty" }

func (p *faulty) Subscribe(_ context.Context, url string) error {
	return p.do("subscribe", func() error {
		p.urls = append(p.urls, url)
		return nil
	})
}

// ReadNotice takes for signed by the platform what has its address for a
// signature.
func (p *faulty) ReadNotice(url, signature string, body []byte, _ time.Time) (string, error) {
	if signature != url {
		return "", platform.ErrForged
	}
	return string(body), nil
}

// staff changes a member as the platform's staff does, and returns it.
func (p *faulty) staff(id string, change func(*platform.Member)) platform.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[id]
	m.ID = id
	change(&m)
	p.members[id] = m
	return m
}

var _ platform.Notifier = (*faulty)(nil)

func (p *faulty) taken(email, but string) bool {
	for id, m := range p.members {
		// As Ghost on SQLite does; for one address, as Ghost on MySQL.
		if id != but && (m.Email == email || m.Email == "jane@folded.example" && email == "jané@folded.example") {
			return true
		}
	}
	return false
}

func (p *faulty) ids() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.members))
}

// emails returns the members' emails and names on the platform.
func (p *faulty) emails() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []string{}
	for _, m := range p.members {
		list = append(list, m.Email+" "+m.Name)
	}
	slices.Sort(list)
	return list
}

func (p *faulty) set(fault func(string) error, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.after = fault, after
}

func (p *faulty) breakWith(err error) { p.set(func(string) error { return err }, false) }

// loseAnswers has no change answered, whether it is made or not.
func (p *faulty) loseAnswers(made bool) {
	p.set(func(method string) error {
		if method == "find" || method == "get" {
			return nil
		}
		return context.DeadlineExceeded
	}, made)
}

func (p *faulty) mend() { p.set(nil, false) }
