package registration

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file gives registrants the labels of their events, and takes them away after they have
// cancelled (docs/registration.md#labels).

// Kind is the kind of work that gives a member the labels of all events for which they are
// registered. Its keys are members' UUIDs.
const Kind = "registrations"

// labelsTimeout bounds an attempt. Ghost takes some 60 ms for a label, and an event has 100 at
// most; an attempt that ends early is gone on with.
const labelsTimeout = 30 * time.Second

// LabelHosts are the platforms of sites, nil for a site that this process does not serve.
type LabelHosts func(site string) platform.MemberLabeler

// Changed is told the platform's ID of a member whose labels were changed there, or who was made.
type Changed func(ctx context.Context, site, id string) error

// labels gives registrants their labels.
type labels struct {
	seats   *seats
	db      *database.DB
	events  *events.SQL
	hosts   LabelHosts
	changed Changed
	logger  *zap.Logger
}

func (l *labels) kind() work.Kind {
	return work.Kind{
		Name: Kind, Timeout: labelsTimeout, Do: l.do, IsPersonal: true,
		Platform: func(site string) any { return l.hosts(site) },
	}
}

// do labels the member of a task.
func (l *labels) do(ctx context.Context, t work.Task) work.Result {
	if isWalkIn(t.Key) { // an edge of the last release has queued it
		return work.Result{Outcome: work.Done}
	}
	host := l.hosts(t.Site)
	if host == nil {
		return work.Result{Outcome: work.Again, Reason: "the site is not served any more", IsUnasked: true}
	}
	id, err := l.label(ctx, host, t.Site, t.Key)
	switch refusal, isRefused := errors.AsType[*platform.Refusal](err); {
	case isRefused:
		return work.Result{Outcome: work.Never, Reason: refusal.Reason}
	case err != nil:
		l.logger.Warn("cannot label registrant yet; retrying", zap.String("site", t.Site), zap.Error(err))
		_, isPlatforms := errors.AsType[*PlatformError](err)
		return work.Result{Outcome: work.Again, Reason: platform.ReasonOf(err), IsUnanswered: isPlatforms, IsUnasked: !isPlatforms}
	case id != "":
		if err := l.changed(ctx, t.Site, id); err != nil { // a comparison finds it later
			l.logger.Debug("cannot read labels of registrant", zap.String("site", t.Site), zap.Error(err))
		}
	}
	return work.Result{Outcome: work.Done}
}

// PlatformError is an error of the platform, and not of the store.
type PlatformError struct{ error }

// Unwrap is for [errors.Is].
func (e *PlatformError) Unwrap() error { return e.error }

func ofPlatform(err error) error {
	if err == nil {
		return nil
	}
	return &PlatformError{err}
}

// label gives a member the labels that they should have from here, and takes those away that
// they should not have any more. A label that somebody else gave them stays, and so does it stay
// away if somebody took it from them. It returns the platform's ID if anything was changed.
func (l *labels) label(ctx context.Context, host platform.MemberLabeler, site, member string) (changed string, err error) {
	wanted, err := l.wanted(ctx, site, member)
	if err != nil {
		return "", err
	}
	given, err := l.given(ctx, site, member)
	if err != nil {
		return "", err
	}
	if len(wanted) == 0 && len(given) == 0 {
		return "", nil
	}
	id, has, err := host.LabelsOf(ctx, member)
	if errors.Is(err, platform.ErrNotFound) { // deleted: nobody is left to be labelled, or to be named
		return "", l.seats.forgetMember(ctx, site, member)
	}
	if err != nil {
		return "", ofPlatform(err)
	}
	hasLabel, wants, isSent := foldedSet(has), foldedSet(wanted), make(map[string]bool)
	for label, wasSent := range given {
		isSent[fold.Label(label)] = isSent[fold.Label(label)] || wasSent
	}
	var refused error // which keeps no other label from being changed
	for _, label := range wanted {
		if hasLabel[fold.Label(label)] || isSent[fold.Label(label)] {
			continue
		}
		// It is kept first that the label is from here, so that it goes again whatever happens.
		if err := l.exec(ctx, keepLabel, site, member, label, false); err != nil {
			return changed, err
		}
		switch err := host.AddLabel(ctx, id, label); {
		case isRefusal(err):
			refused = err
			err = l.exec(ctx, forgetLabel, site, member, label)
			if err != nil {
				return changed, err
			}
			continue
		case err != nil:
			return changed, ofPlatform(err)
		}
		changed = id
		if err := l.exec(ctx, keepLabel, site, member, label, true); err != nil {
			return changed, err
		}
	}
	for label, wasSent := range given {
		switch isWanted, isThere := wants[fold.Label(label)], hasLabel[fold.Label(label)]; {
		case !isWanted && isThere:
			if err := host.RemoveLabel(ctx, id, label); err != nil {
				return changed, ofPlatform(err)
			}
			changed = id
			fallthrough
		case !isWanted:
			if err := l.exec(ctx, forgetLabel, site, member, label); err != nil {
				return changed, err
			}
		case !wasSent && isThere: // an attempt ended before it could note this
			changed = id
			if err := l.exec(ctx, keepLabel, site, member, label, true); err != nil {
				return changed, err
			}
		}
	}
	return changed, refused
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*platform.Refusal](err)
	return ok
}

// foldedSet has labels without their case.
func foldedSet(labels []string) map[string]bool {
	set := make(map[string]bool, len(labels))
	for _, label := range labels {
		set[fold.Label(label)] = true
	}
	return set
}

// wanted has each label once, though events may write it in another case.
func (l *labels) wanted(ctx context.Context, site, member string) (wanted []string, err error) {
	ids, err := database.List(ctx, l.db.Read, database.Text, findRegistered, site, member)
	if err != nil {
		return nil, database.Wrap("finding the registrations of a member", err)
	}
	list, err := l.events.WithIDs(ctx, site, ids)
	has := make(map[string]bool)
	for _, e := range list {
		for _, label := range e.RegistrantLabels() {
			if folded := fold.Label(label); !has[folded] {
				has[folded], wanted = true, append(wanted, label)
			}
		}
	}
	return wanted, err
}

// given has the labels that were given from here, and whether the platform is known to have
// them: an attempt may have ended between the two.
func (l *labels) given(ctx context.Context, site, member string) (map[string]bool, error) {
	given, err := database.Map[string, bool](ctx, l.db.Read, findLabels, site, member)
	return given, database.Wrap("finding the labels of a registrant", err)
}

func (l *labels) exec(ctx context.Context, query string, args ...any) error {
	_, err := l.db.Write.ExecContext(ctx, query, args...)
	return database.Wrap("keeping the labels of a registrant", err)
}

// enqueueLabels has a member labelled whose registration for an event has changed, in its
// transaction.
func enqueueLabels(ctx context.Context, tx *sql.Tx, queue *work.Queue, site, member, email string) error {
	_, err := queue.Enqueue(ctx, tx, work.Task{Site: site, Kind: Kind, Key: member, Title: email})
	return err
}

const (
	findRegistered = `SELECT event FROM registrations WHERE site = $1 AND member = $2 AND cancelled_at IS NULL ORDER BY event`

	findLabelled = `SELECT member, email FROM registrations r WHERE site = $1 AND event = $2
		AND (EXISTS (SELECT 1 FROM registration_labels l WHERE l.site = r.site AND l.member = r.member)
			OR EXISTS (SELECT 1 FROM work w WHERE w.site = r.site AND w.kind = '` + Kind + `' AND w.key = r.member))
		ORDER BY member`

	findLabels = `SELECT label, sent FROM registration_labels WHERE site = $1 AND member = $2`
	keepLabel  = `INSERT INTO registration_labels (site, member, label, sent) VALUES ($1, $2, $3, $4)
		ON CONFLICT (site, member, label) DO UPDATE SET sent = excluded.sent`
	forgetLabel = `DELETE FROM registration_labels WHERE site = $1 AND member = $2 AND label = $3`
)
