package members

import (
	"context"
	"errors"
	"fmt"
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
			return &platform.Refusal{Reason: "Member already exists."}
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

func (p *faulty) Update(_ context.Context, id string, m platform.Member) (platform.Member, error) {
	m.ID = id
	return m, p.do("update", func() error {
		if _, there := p.members[id]; !there {
			return platform.ErrNotFound
		}
		if p.taken(m.Email, id) || strings.HasPrefix(m.Email, "refused") {
			return &platform.Refusal{Reason: "Ghost does not like it."}
		}
		m.Status, m.CreatedAt = p.members[id].Status, p.members[id].CreatedAt
		p.members[id] = m
		return nil
	})
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

func (p *faulty) taken(email, but string) bool {
	for id, m := range p.members {
		if id != but && strings.EqualFold(m.Email, email) {
			return true
		}
	}
	return false
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
func (p *faulty) mend()               { p.set(nil, false) }
