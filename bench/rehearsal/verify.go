package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// drainTimeout is how long what is pending may take to be delivered after the load.
const drainTimeout = 2 * time.Minute

// verdict is what became of what the edges acknowledged.
type verdict struct {
	acknowledged, lost, doubled [4]int // by subject
	pending                     int    // members when the load ended
	drained                     time.Duration
}

// subjects are what is counted.
var subjects = [4]string{"members in the store", "members at the stand-in", "registrations", "saves of drafts"}

// verify compares what was acknowledged with what is there.
func (p *publication) verify(ctx context.Context, f *fleet) (v verdict, err error) {
	err = withDatabase(ctx, f.postgres.source, func(db *database.DB) error {
		pending, drained, err := drain(ctx, f, db)
		if err != nil {
			return err
		}
		v, err = p.compare(ctx, f, db)
		v.pending, v.drained = pending, drained
		return err
	})
	return v, err
}

// compare is verify without what is pending.
func (p *publication) compare(ctx context.Context, f *fleet, db *database.DB) (v verdict, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err = errors.Join(p.verifyMembers(ctx, f, db, &v), p.verifyRegistrations(ctx, db, &v), p.verifySaves(ctx, db, &v))
	return v, err
}

// drain has pending members delivered at once, and waits until they are. It returns how many there
// were. Those that are left after drainTimeout are not at the stand-in, and so count as lost.
func drain(ctx context.Context, f *fleet, db *database.DB) (pending int, took time.Duration, err error) {
	begin := time.Now()
	for first := true; ; first = false {
		var left int
		if err := db.Read.QueryRowContext(ctx, "SELECT count(*) FROM members WHERE applied < version").Scan(&left); err != nil {
			return 0, 0, err
		}
		if first {
			pending = left
		}
		if took = time.Since(begin); left == 0 || took > drainTimeout {
			return pending, took, nil
		}
		if err := tryPending(ctx, f); err != nil {
			return 0, 0, err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
}

// tryPending has an edge try all that is pending now.
func tryPending(ctx context.Context, f *fleet) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://caddy/lychgate/pending/try", nil)
	if err != nil {
		return err
	}
	admin := caddytest.Admin(f.edges[0].AdminSocket)
	defer admin.CloseIdleConnections()
	response, err := admin.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("trying what is pending: %s", response.Status)
	}
	return nil
}

func (p *publication) verifyMembers(ctx context.Context, f *fleet, db *database.DB, v *verdict) error {
	guids := make(map[string]string)
	err := each(ctx, db, "SELECT email, guid FROM members WHERE NOT deleted", func(values [2]string) { guids[values[0]] = values[1] })
	if err != nil {
		return err
	}
	delivered := f.ghost.Emails("")
	for email, guid := range p.members {
		if guids[email] != guid {
			v.lost[0]++
		}
		if delivered[email] == 0 {
			v.lost[1]++
		}
	}
	for _, count := range delivered {
		if count > 1 {
			v.doubled[1]++
		}
	}
	v.acknowledged[0], v.acknowledged[1], v.doubled[0] = len(p.members), len(p.members), p.renumbered
	return nil
}

// verifyRegistrations counts a registration as doubled if it took two places.
func (p *publication) verifyRegistrations(ctx context.Context, db *database.DB, v *verdict) error {
	there := make(map[seat]struct{})
	err := each(ctx, db, "SELECT event, member FROM registrations WHERE cancelled_at IS NULL", func(values [2]string) {
		there[seat{values[0], values[1]}] = struct{}{}
	})
	if err != nil {
		return err
	}
	for s := range p.registered {
		if _, ok := there[s]; !ok {
			v.lost[2]++
		}
	}
	v.acknowledged[2] = len(p.registered)
	var taken int
	if err := db.Read.QueryRowContext(ctx, "SELECT coalesce(sum(taken), 0) FROM registrations_taken").Scan(&taken); err != nil {
		return err
	}
	v.doubled[2] = max(taken-len(there), len(there)-taken)
	return nil
}

// verifySaves counts a save as lost if the draft has what was saved before that save was sent.
func (p *publication) verifySaves(ctx context.Context, db *database.DB, v *verdict) error {
	last := make(map[string]int) // the numbers of the saves that drafts have
	var wrong error
	err := each(ctx, db, "SELECT id, content FROM events WHERE status = 'draft'", func(values [2]string) {
		var content struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal([]byte(values[1]), &content); err != nil {
			wrong = err
		}
		number := -1
		if _, err := fmt.Sscanf(strings.TrimSpace(content.Name), "Save %d", &number); err != nil {
			wrong = err
		}
		last[values[0]] = number
	})
	if err = errors.Join(err, wrong); err != nil {
		return err
	}
	ended := make(map[int]time.Time) // of saves that were acknowledged
	for _, s := range p.saves {
		ended[s.n] = s.ended
	}
	for _, s := range p.saves {
		number, isThere := last[p.drafts[s.draft]]
		at, isAcknowledged := ended[number]
		if !isThere || number < 0 || isAcknowledged && at.Before(s.sent) {
			v.lost[3]++
		}
	}
	v.acknowledged[3] = len(p.saves)
	return nil
}

// each reads rows of two texts.
func each(ctx context.Context, db *database.DB, query string, take func([2]string)) error {
	rows, err := db.Read.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var values [2]string
		if err := rows.Scan(&values[0], &values[1]); err != nil {
			return err
		}
		take(values)
	}
	return rows.Err()
}
