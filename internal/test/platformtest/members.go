package platformtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// members are those of the publication.
type members struct {
	*faults

	Members map[string]platform.Member // by ID
	next    int                        // number of members that were ever made
}

var errDislike = &platform.Refusal{Reason: "Ghost does not like it."}

// refuses reports whether the platform never takes a member.
func refuses(m platform.Member) bool {
	return strings.HasPrefix(m.Email, "refused") || m.Note == "refused"
}

func (p *members) taken(email, but string) bool {
	for id, m := range p.Members {
		// As Ghost on SQLite does; for one address, as Ghost on MySQL.
		if id != but && (m.Email == email || m.Email == "jane@folded.example" && email == "jané@folded.example") {
			return true
		}
	}
	return false
}

// Create fails with a Refusal for a taken email, and for a member that is called refused.
func (p *members) Create(ctx context.Context, m platform.Member) (platform.Member, error) {
	err := p.call(ctx, "create", m.Email, func() error {
		if p.taken(m.Email, "") {
			return &platform.Refusal{Reason: "Member already exists.", Taken: true}
		}
		if refuses(m) {
			return errDislike
		}
		p.next++
		m.ID, m.UUID, m.Status, m.CreatedAt = fmt.Sprint("p-", p.next), fmt.Sprint("uuid-p-", p.next), "free", time.Now()
		p.Members[m.ID] = m
		return nil
	})
	return m, err
}

// Update refuses what Create refuses.
func (p *members) Update(ctx context.Context, id string, c platform.Change) (m platform.Member, err error) {
	err = p.call(ctx, "update", id, func() error {
		var there bool
		if m, there = p.Members[id]; !there {
			return platform.ErrNotFound
		}
		if c.Email != nil {
			if m.Email = *c.Email; p.taken(m.Email, id) {
				return errDislike
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
			return errDislike
		}
		p.Members[id] = m
		return nil
	})
	return m, err
}

// Delete forgets a member.
func (p *members) Delete(ctx context.Context, id string) error {
	return p.call(ctx, "delete", id, func() error {
		if _, there := p.Members[id]; !there {
			return platform.ErrNotFound
		}
		delete(p.Members, id)
		return nil
	})
}

// FindByEmail compares without case.
func (p *members) FindByEmail(ctx context.Context, email string) (m platform.Member, err error) {
	err = p.call(ctx, "find", email, func() error {
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

// Get finds a member by its ID.
func (p *members) Get(ctx context.Context, id string) (m platform.Member, err error) {
	err = p.call(ctx, "get", id, func() error {
		var there bool
		if m, there = p.Members[id]; !there {
			return platform.ErrNotFound
		}
		return nil
	})
	return m, err
}

// GetAll fails as Get does: both are the call "get".
func (p *members) GetAll(ctx context.Context, ids []string) (list []platform.Member, err error) {
	err = p.call(ctx, "get", "", func() error {
		for _, id := range ids {
			if m, there := p.Members[id]; there {
				list = append(list, m)
			}
		}
		return nil
	})
	return list, err
}

// Count counts all members, and finds the one that was changed last.
func (p *members) Count(ctx context.Context) (n int, latest platform.Member, err error) {
	err = p.call(ctx, "count", "", func() error {
		n = len(p.Members)
		for _, m := range p.Members {
			if m.UpdatedAt.After(latest.UpdatedAt) || m.UpdatedAt.Equal(latest.UpdatedAt) && m.ID > latest.ID {
				latest = m
			}
		}
		return nil
	})
	return n, latest, err
}

// List has pages of three.
func (p *members) List(ctx context.Context, after string, since time.Time) (page []platform.Member, total int, err error) {
	err = p.call(ctx, "list", after, func() error {
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

// EditMember changes a member as the platform's staff does, and returns it. It adds one
// where there is none.
func (p *members) EditMember(id string, change func(*platform.Member)) platform.Member {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	m := p.Members[id]
	m.ID = id
	change(&m)
	p.Members[id] = m
	return m
}

// IDs are sorted.
func (p *members) IDs() []string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Sorted(maps.Keys(p.Members))
}

// Emails lists each member's email and name, with a space between them, sorted.
func (p *members) Emails() []string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	list := []string{}
	for _, m := range p.Members {
		list = append(list, m.Email+" "+m.Name)
	}
	slices.Sort(list)
	return list
}
