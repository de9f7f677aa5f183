package push

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// This file does one row.

// missing finds the member that a row names, nil for a new one, and the fields of the row
// that it does not have yet, checked. Errors: *members.InvalidError, those of the store.
func (p *push) missing(ctx context.Context, row Row) (*members.Record, members.Fields, outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTimeout)
	defer cancel()
	known, err := p.Service.Known(ctx, p.Integration, row.Identifier)
	if errors.Is(err, members.ErrNotFound) {
		fields, err := row.Fields(nil)
		if err == nil {
			err = fields.CheckNew(p.Integration)
		}
		return nil, fields, created, err
	}
	if err != nil {
		return nil, members.Fields{}, updated, err
	}
	fields, err := row.Fields(&known.Member)
	if err == nil {
		fields = p.withoutShared(ctx, known, fields)
	}
	if err != nil {
		return nil, members.Fields{}, updated, err
	}
	if fields = fields.Changes(known.Member); fields.AreNone() {
		return &known, fields, unchanged, nil
	}
	return &known, fields, updated, fields.Check()
}

// withoutShared leaves out the email, and the subscription, of a member that has a
// placeholder because the email is another's, whom only the platform may have. An error is none
// here: what is written then meets it too.
func (p *push) withoutShared(ctx context.Context, known members.Record, fields members.Fields) members.Fields {
	if fields.Email == nil || !p.Integration.IsPlaceholder(known.Email) {
		return fields
	}
	isShared := emailaddr.Same(known.Sent, *fields.Email) // the create was sent with it, and found it taken
	if !isShared {
		byEmail := members.Integration{Site: p.Service.Site, Mode: members.EmailMode}
		other, err := p.Service.Get(ctx, byEmail, *fields.Email)
		isShared = err == nil && other.Member.GUID != known.GUID
	}
	if isShared {
		fields.Email, fields.Subscribed = nil, nil
	}
	return fields
}

// put does what a row says, however long the platform takes. Errors:
// *members.InvalidError if it is refused, that of ctx if that is done before the platform
// has taken it, those of the store.
func (p *push) put(ctx context.Context, row Row) (outcome, error) {
	result, faults, hasWaited := unchanged, 0, false
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		did, isQueued, err := p.try(ctx, row)
		if result == unchanged && err == nil {
			result = did
		}
		_, isRefused := errors.AsType[*members.InvalidError](err)
		switch {
		case err == nil && !isQueued:
			return result, nil
		case isRefused:
			return refused, err
		case err != nil && !errors.Is(err, members.ErrNotFound): // which staff have deleted meanwhile
			if faults++; faults == maxFaults {
				return result, err
			}
		}
		if isQueued && !hasWaited {
			hasWaited = true
			p.beginWait()
			defer p.endWait(ctx)
		}
		if isQueued {
			p.noteProblem(ctx, row)
		}
		if err := p.await(ctx, row, wait, isQueued); err != nil {
			if isQueued {
				return queued, err
			}
			return result, err
		}
	}
}

// try tries once to do what a row says.
func (p *push) try(ctx context.Context, row Row) (did outcome, isQueued bool, err error) {
	known, fields, did, err := p.missing(ctx, row)
	if err != nil || did == unchanged && !known.IsPending() {
		return did, false, err
	}
	// Of a member that is pending, an update without fields sends what is pending.
	if p.DryRun {
		err := p.checkEmail(ctx, known, fields)
		if errors.Is(err, errAdopted) {
			did, err = updated, nil
		}
		if err == nil {
			did = p.plan(row, fields, did)
		}
		return did, false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTimeout)
	defer cancel()
	var written members.Result
	switch {
	case known != nil:
		written, err = p.Service.Update(ctx, p.Integration, row.Identifier, fields, nil)
	default:
		if written, err = p.Service.Create(ctx, p.Integration, fields); written.Adopted {
			did = updated
		}
		if isTaken(err) && p.Integration.Mode == members.EmailMode {
			return p.adopt(ctx, row, err)
		}
	}
	return did, written.Queued, err
}

// adopt changes a member whom the platform had, and the store had not.
func (p *push) adopt(ctx context.Context, row Row, taken error) (did outcome, isQueued bool, err error) {
	found, err := p.Service.Get(ctx, p.Integration, row.Identifier)
	if errors.Is(err, members.ErrNotFound) {
		return refused, false, taken
	}
	if _, isAway := errors.AsType[*members.InvalidError](err); isAway {
		return updated, true, nil // it is asked again
	}
	if err != nil {
		return updated, false, err
	}
	m := found.Member
	fields, err := row.Fields(&m)
	if err != nil {
		return updated, false, err
	}
	if fields = fields.Changes(m); fields.AreNone() {
		return unchanged, false, nil
	}
	written, err := p.Service.Update(ctx, p.Integration, row.Identifier, fields, nil)
	return updated, written.Queued, err
}

func isTaken(err error) bool {
	invalid, ok := errors.AsType[*members.InvalidError](err)
	return ok && invalid.Code == members.CodeEmailTaken
}

// checkEmail checks whether a row could have its email, as far as that is known without
// the platform.
func (p *push) checkEmail(ctx context.Context, known *members.Record, fields members.Fields) error {
	if fields.Email == nil {
		return nil
	}
	other, err := p.Service.Store.Read(ctx, members.Key{Site: p.Service.Site, Email: *fields.Email})
	if err == nil && known == nil && p.Integration.Mode == members.CustomIDMode {
		has, err := p.Service.Store.HasMemberID(ctx, other.Member.GUID, p.Integration.Name)
		if !has || err != nil {
			return cmp.Or(err, errAdopted)
		}
	}
	getsPlaceholder := p.Integration.DuplicateEmails && known == nil
	switch {
	case errors.Is(err, members.ErrNotFound), err == nil && getsPlaceholder:
		return nil
	case err == nil:
		return &members.InvalidError{Message: members.EmailTaken, Code: members.CodeEmailTaken}
	}
	return err
}

// errAdopted means that the row's member has the email already, and gets the row's ID.
var errAdopted = errors.New("the member is adopted")

// await waits for the platform to take a row that is queued, or for some time.
func (p *push) await(ctx context.Context, row Row, most time.Duration, isQueued bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for deadline := time.Now().Add(most); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if !isQueued {
			return nil
		}
		known, err := p.Service.Known(ctx, p.Integration, row.Identifier)
		if err != nil || !known.IsPending() {
			return nil // the next try tells
		}
	}
	return nil
}

// noteProblem notes why a row was queued. There is no reason if another process is
// writing the member.
func (p *push) noteProblem(ctx context.Context, row Row) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTimeout)
	defer cancel()
	if known, err := p.Service.Known(ctx, p.Integration, row.Identifier); err == nil && known.Problem != "" {
		p.note(known.Problem)
	}
}

// note tells once why the platform does not take writes.
func (p *push) note(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Waiting != nil && !p.isWaiting {
		p.Waiting(problem)
	}
	p.isWaiting = true
}

// beginWait counts a row that waits for the platform, and endWait one that no longer
// does: once none does, the platform takes writes again.
func (p *push) beginWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
}

func (p *push) endWait(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting--; p.waiting == 0 && p.isWaiting && p.Waiting != nil && ctx.Err() == nil {
		p.Waiting("")
	}
	p.isWaiting = p.isWaiting && p.waiting > 0
}
