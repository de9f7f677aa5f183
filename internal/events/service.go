package events

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Service keeps the events of all sites of a process. It may be used by many goroutines at
// once.
//
// Where a revision is asked for, 0 is any, and ErrChanged is returned if the event has
// another one. An event that is returned with Pending is kept, and synced to the platform
// later.
type Service struct {
	// Posts are those of the events.
	Posts *Posts

	store      Store
	work       *work.Queue
	dependents []Dependent
	listing    *limiter.Limiter
	by         Editor
}

// By sets the editor who is the author of new posts, and who is named in the history.
func (s *Service) By(e Editor) *Service {
	theirs := *s
	theirs.by = e
	return &theirs
}

// New registers the kind of work that syncs events with the queue. Posts needs its Run. hosts is
// nil for a site that this process does not serve.
func New(store Store, queue *work.Queue, hosts func(site string) platform.EventHost, logger *zap.Logger, dependents ...Dependent) *Service {
	return &Service{
		Posts: newPosts(store, queue, hosts, logger, dependents),
		store: store, work: queue, dependents: dependents, listing: limiter.New(maxLists, 0),
	}
}

// maxLists bounds the lists that are read at once, for all sites of a process. One is read in
// some milliseconds, and has at most maxListBytes and one event.
const maxLists = 4

// OfPosts filters at most 100 posts to those of the site's events.
func (s *Service) OfPosts(ctx context.Context, site string, posts []string) ([]string, error) {
	return s.store.OfPosts(ctx, site, posts)
}

// Now is the store's clock.
func (s *Service) Now() time.Time { return s.store.Now() }

// IsSending reports whether an event that is pending is on its way to the platform, and not kept until that responds.
func (s *Service) IsSending(e Event) bool {
	return e.Pending != nil && e.Pending.Tries == 0 && e.Pending.Problem == "" && !s.work.IsPaused(e.Site)
}

// Tally counts events for the lists of a site, whose months are in a time zone.
func (s *Service) Tally(ctx context.Context, site string, q Query, zone *time.Location) (Tally, error) {
	if err := s.listing.Acquire(ctx, site); err != nil {
		return Tally{}, err
	}
	defer s.listing.Release(site)
	return s.store.Tally(ctx, site, q, zone)
}

// List waits while maxLists lists are read.
func (s *Service) List(ctx context.Context, site string, q Query) (Page, error) {
	if err := s.listing.Acquire(ctx, site); err != nil {
		return Page{}, err
	}
	defer s.listing.Release(site)
	return s.store.List(ctx, site, q)
}

// Find fails with ErrNotFound also for an event that is being deleted.
func (s *Service) Find(ctx context.Context, site, id string) (Event, error) {
	return Find(ctx, s.store, site, id)
}

// Create keeps a new event, a draft. Errors: *InvalidError, ErrTooFast, ErrTooMany, those of the store.
func (s *Service) Create(ctx context.Context, site string, d Edit) (Event, error) {
	values, err := d.checked()
	if err != nil {
		return Event{}, err
	}
	return s.insert(ctx, site, newID(), Edit{d.Theme, d.Type, values})
}

// insert keeps a new event, unless the site has too many. Requests at the same moment, which
// are few, may each have the last place.
func (s *Service) insert(ctx context.Context, site, id string, d Edit) (Event, error) {
	if err := s.checkMade(ctx, site, 1); err != nil {
		return Event{}, err
	}
	return s.keep(ctx, site, id, d)
}

// checkMade reports why a site may not make some more events. Errors: ErrTooFast, ErrTooMany, those of
// the store.
func (s *Service) checkMade(ctx context.Context, site string, more int) error {
	drafts, made, err := s.store.CountMade(ctx, site, madeSpan)
	switch {
	case err != nil:
		return err
	case made+more > MaxMade:
		return ErrTooFast
	case drafts+more > MaxDrafts:
		return ErrTooMany
	}
	return nil
}

// keep keeps a new event.
func (s *Service) keep(ctx context.Context, site, id string, d Edit) (Event, error) {
	now := s.store.Now().UTC().Truncate(time.Millisecond)
	e := Event{
		Site: site, ID: id, Theme: d.Theme, Type: d.Type, Values: d.Values, Status: Draft,
		Revision: newRevision(), CreatedAt: now, UpdatedAt: now,
	}
	err := s.store.Insert(ctx, e, s.by)
	if err == nil {
		audit.Note(ctx, site, thingKind, id, "created")
	}
	return e, err
}

// CreateOnce is Create for an editor who may ask again with the same key, because the response
// was lost: then it returns the event that was made. Errors: *KeyUsedError, those of Create.
func (s *Service) CreateOnce(ctx context.Context, site, editor, key string, d Edit) (Event, error) {
	values, err := d.checked()
	if err != nil {
		return Event{}, err
	}
	d.Values = values
	id := idOf(site, editor, key)
	made, err := s.Find(ctx, site, id)
	if errors.Is(err, ErrNotFound) {
		e, failure := s.insert(ctx, site, id, d)
		if failure == nil {
			return e, nil
		}
		made, err = s.Find(ctx, site, id) // which was made at the same moment
		switch isThere := database.ViolatedUnique(failure); {
		case err != nil && !isThere:
			err = failure
		case errors.Is(err, ErrNotFound):
			err = new(KeyUsedError)
		}
	}
	if err == nil && !made.isAs(d) {
		err = keyUsed(&made)
	}
	return made, err
}

// keyUsed is the error for somebody who wants to make another event with the key of one.
func keyUsed(e *Event) error {
	used := &KeyUsedError{ID: e.ID}
	if e.IsUntouched() {
		used.Revision = e.Revision
	}
	return used
}

// Made finds the event that an editor has created with an idempotency key. Errors: ErrNotFound.
func (s *Service) Made(ctx context.Context, site, editor, key string) (Event, error) {
	return s.Find(ctx, site, idOf(site, editor, key))
}

// The ID is a hash, so a request that is repeated with its key finds the same event.
func idOf(site, editor, key string) string {
	sum := sha256.Sum256([]byte(encode([]string{site, editor, key})))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:idLength]
}

// change changes an event that has a revision, gives it another, and has it synced if the
// platform is to have it.
func (s *Service) change(ctx context.Context, site, id string, revision int64, change func(*Event) error) (Event, error) {
	e, task, err := s.enqueue(ctx, site, id, revision, s.work.Enqueuer(site, Kind), change)
	if err != nil || task.Key == "" {
		return e, err
	}
	return s.Posts.await(ctx, e, task), nil
}

// enqueue is change without waiting for the platform. The task is zero if it has nothing to do.
func (s *Service) enqueue(
	ctx context.Context, site, id string, revision int64,
	enqueue func(context.Context, *sql.Tx, work.Task) (work.Task, error), change func(*Event) error,
) (e Event, task work.Task, err error) {
	if !IsID(id) {
		return Event{}, work.Task{}, ErrNotFound
	}
	var noted string // for the audit log
	made := newRevision()
	e, err = s.store.Change(ctx, site, id, func(tx *sql.Tx, e *Event) (err error) {
		if e.Revision == made { // in the commit that was lost, which was kept
			return nil
		}
		noted, task = "", work.Task{}
		switch {
		case e.Status == deleted:
			return ErrNotFound
		case revision != 0 && revision != e.Revision:
			return ErrChanged
		}
		before := *e
		if err := change(e); err != nil {
			return err
		}
		if did := e.since(&before); did != "" {
			isNew, err := s.store.Note(ctx, tx, Key{site, id}, s.by, did)
			if err != nil {
				return err
			}
			if isNew {
				noted = did
			}
		}
		e.Revision, e.UpdatedAt = made, s.store.Now().UTC().Truncate(time.Millisecond)
		if !e.Status.isPublic() {
			e.body = ""
		}
		if e.Status == deleted {
			noted = string(deleted)
			for _, of := range s.dependents {
				if err := of.Deleted(ctx, tx, e.Site, e.ID); err != nil {
					return err
				}
			}
		}
		if e.Pending != nil || e.wantsPost() && !e.hasLeft() || e.Status == deleted {
			task, err = enqueue(ctx, tx, e.task())
			e.Pending = &Pending{Since: task.Since, Tries: task.Attempts}
		}
		return err
	})
	if err == nil && noted != "" {
		audit.Note(ctx, site, thingKind, id, noted)
	}
	return e, task, err
}

// task is the work of syncing an event.
func (e *Event) task() work.Task {
	return work.Task{Site: e.Site, Kind: Kind, Key: e.ID, Title: e.title()}
}

// Save keeps what an editor has changed. A draft may have any values; those of a published
// event must be ones that it could be published with. Errors: ErrNotFound, ErrChanged,
// *InvalidError, those of the store.
func (s *Service) Save(ctx context.Context, site, id string, revision int64, d Edit, t *Type) (Event, error) {
	values, err := d.checked()
	if err != nil {
		return Event{}, err
	}
	d.Values = values
	e, err := s.change(ctx, site, id, revision, func(e *Event) error {
		isSame := e.isAs(d)
		e.Theme, e.Type, e.Values = d.Theme, d.Type, values
		switch {
		case e.Status.isPublic():
			return s.Posts.shape(e, t)
		case isSame && t == nil:
		case e.wantsPost():
			_ = s.Posts.shapeDraft(e, t) // a draft is kept, whatever it is
		case !isSame:
			e.Shape.Checked = ""
		}
		return nil
	})
	if errors.Is(err, ErrChanged) { // by this edit, of which the response was lost
		if now, found := s.Find(ctx, site, id); found == nil && now.isAs(d) {
			return now, nil
		}
	}
	return e, err
}

// Publish has readers find an event. Errors: ErrNotFound, ErrChanged, *InvalidError, those
// of the store.
func (s *Service) Publish(ctx context.Context, site, id string, revision int64, t *Type) (Event, error) {
	return s.change(ctx, site, id, revision, s.publishing(t))
}

func (s *Service) publishing(t *Type) func(*Event) error {
	return func(e *Event) error {
		e.Status = Published
		s.order(e, Order{})
		return s.Posts.shape(e, t)
	}
}

// Write has a draft get a post, for its text, and the post of any event stay as it is. Errors:
// ErrNotFound, ErrChanged, *InvalidError if the theme has no such type, those of the store.
func (s *Service) Write(ctx context.Context, site, id string, revision int64, t *Type) (Event, error) {
	e, err := s.Find(ctx, site, id)
	switch {
	case err != nil:
		return Event{}, err
	case e.Post.ID != "" && e.Pending == nil, e.Status.isPublic(): // whose post is there, or on its way
		return e, nil
	case revision != 0 && revision != e.Revision:
		return Event{}, ErrChanged
	}
	return s.change(ctx, site, id, revision, func(e *Event) error {
		if e.Status.isPublic() {
			return nil // since a moment ago
		}
		s.order(e, Order{HasPost: true, IsTakenBack: e.Order.IsTakenBack})
		return s.Posts.shapeDraft(e, t)
	})
}

// order notes what is asked for of a post. The first who asks for one is its author.
func (s *Service) order(e *Event, o Order) {
	if o.Author = e.Order.Author; o.Author == "" && e.Post.ID == "" {
		o.Author = s.by.ID
	}
	o.PutsCard = e.Order.PutsCard
	e.Order = o
}

// Problems says why an event cannot be published as a type of its theme. t is nil if the theme no
// longer has the type, which is a problem too.
func (s *Service) Problems(e Event, t *Type) []manifest.Problem {
	err := s.Posts.shape(&e, t)
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return invalid.Problems
	}
	return []manifest.Problem{}
}

// Unpublish has readers find an event no longer. Its post becomes a draft and keeps its
// text. Errors: ErrNotFound, ErrChanged, ErrNoPost, those of the store.
func (s *Service) Unpublish(ctx context.Context, site, id string, revision int64) (Event, error) {
	return s.change(ctx, site, id, revision, func(e *Event) error {
		if !e.Status.isPublic() {
			return ErrNoPost
		}
		e.Status, e.Order.IsTakenBack = Draft, true
		return nil
	})
}

// Cancel says on the page of an event, and in calendars, that it does not take place.
// Publish takes that back. Errors: those of Unpublish.
func (s *Service) Cancel(ctx context.Context, site, id string, revision int64) (Event, error) {
	return s.change(ctx, site, id, revision, func(e *Event) error {
		if !e.Status.isPublic() {
			return ErrNoPost
		}
		e.Status, e.Shape.Checked = Cancelled, Cancelled
		return nil
	})
}

// PutCard writes the card of an event into the text of its post again, in place of what staff have made of it, or where
// they have deleted it. Errors: ErrNotFound, ErrChanged, ErrNoPost, those of the store.
func (s *Service) PutCard(ctx context.Context, site, id string, revision int64) (Event, error) {
	return s.change(ctx, site, id, revision, func(e *Event) error {
		if e.Post.ID == "" || e.onPage() == nil {
			return ErrNoPost
		}
		e.Order.PutsCard = true
		return nil
	})
}

// Delete forgets an event. Its post becomes a draft, and keeps its text. Errors:
// ErrNotFound, ErrChanged, those of the store.
func (s *Service) Delete(ctx context.Context, site, id string, revision int64) error {
	_, err := s.change(ctx, site, id, revision, func(e *Event) error {
		e.Status = deleted
		return nil
	})
	return err
}

// History lists what staff have done with an event, the latest first. Errors: ErrNotFound, those of
// the store.
func (s *Service) History(ctx context.Context, site, id string) ([]history.Entry, error) {
	if _, err := s.Find(ctx, site, id); err != nil {
		return nil, err
	}
	return s.store.History(ctx, Key{site, id})
}

// Attend notes that an editor has an event open, and returns the names of others who do, and
// the event's revision. Errors: ErrNotFound, those of the store.
func (s *Service) Attend(ctx context.Context, site, id, editor, name string) (others []string, revision int64, err error) {
	e, err := s.Find(ctx, site, id)
	if err != nil {
		return nil, 0, err
	}
	others, err = s.store.Attend(ctx, Key{site, id}, editor, name)
	return others, e.Revision, err
}

// Settings are zero for a site where staff have saved none.
func (s *Service) Settings(ctx context.Context, site string) (Settings, error) {
	_, settings, err := s.store.Version(ctx, site)
	return settings, err
}

const (
	maxImageSize    = 100  // code points
	maxCalendarName = 200  // code points
	maxMessage      = 2000 // code points
)

// MaxMailText bounds what staff write in place of the text of a mail, in code points.
const MaxMailText = 500

// OfferField is the field of OfferHours, in an InvalidError.
const OfferField = "offer_hours"

// MailField is the field of the text of a kind of mail, in an InvalidError.
func MailField(kind string) string { return "mail_" + kind }

// SaveSettings keeps the settings of a site's events. Errors: *InvalidError, those of the
// store.
func (s *Service) SaveSettings(ctx context.Context, site string, settings Settings) error {
	var problems []manifest.Problem
	kept := Settings{
		ImageSize: strings.TrimSpace(settings.ImageSize), CalendarName: strings.TrimSpace(settings.CalendarName), Messages: make(map[string]string),
		Mails: MailSettings{NoDay: settings.Mails.NoDay, Hour: settings.Mails.Hour, OfferHours: settings.Mails.OfferHours},
	}
	if wrong := tooLong(kept.ImageSize, maxImageSize); wrong != "" || !isText(kept.ImageSize) {
		problems = append(problems, manifest.Problem{Field: "image_size", Message: "Default Featured Image Size must be a short text such as 1600 x 900 px."})
	}
	if wrong := tooLong(kept.CalendarName, maxCalendarName); wrong != "" || !isText(kept.CalendarName) {
		problems = append(problems, manifest.Problem{Field: "calendar_name", Message: "Name of the calendar must be a short text such as Events of the Daily."})
	}
	if hours := kept.Mails.OfferHours; hours < 0 || hours > MaxOfferHours {
		problems = append(problems, manifest.Problem{Field: OfferField, Message: fmt.Sprintf("A free place is offered for 1 to %d hours.", MaxOfferHours)})
	}
	check := func(field, text string, most int) {
		if wrong := tooLong(text, most); wrong != "" {
			problems = append(problems, manifest.Problem{Field: field, Message: "The text " + wrong + "."})
		}
		if !isText(text) {
			problems = append(problems, manifest.Problem{Field: field, Message: "The text has characters that cannot be shown."})
		}
	}
	for _, kind := range MailKinds() {
		text := strings.Join(strings.Fields(settings.Mails.Texts[kind]), " ")
		check(MailField(kind), text, MaxMailText)
		if text != "" {
			if kept.Mails.Texts == nil {
				kept.Mails.Texts = make(map[string]string)
			}
			kept.Mails.Texts[kind] = text
		}
	}
	for _, state := range manifest.MessagingStates() {
		text := strings.TrimSpace(settings.Messages[state])
		check(state, text, maxMessage)
		if text != "" {
			kept.Messages[state] = text
		}
	}
	if len(problems) > 0 {
		return &InvalidError{problems}
	}
	err := s.store.SaveSettings(ctx, site, kept)
	if err == nil {
		audit.Note(ctx, site, "event_settings", site, history.Changed)
	}
	return err
}
