package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
)

// This file shows who has registered for an event, and changes it (docs/registration.md#guest-list).

// maxListedGuests is how many guests a page of the list has.
const maxListedGuests = 100

// guestPage is the guest list of an event.
type guestPage struct {
	Notice   *notice
	Undo     string // the UUID of who was just removed, "" for nobody
	Question *guestQuestion

	ID, Name, When, Status string

	Tally   registration.Tally
	Query   string
	After   string // where the page begins, "" for the first one
	Guests  []shownGuest
	Erases  bool   // a name of them can be erased
	Next    string // the address of the next page, "" for none
	CSV     string // the address of the download
	Refused string // why nobody can be added, "" if somebody can
	IsTold  bool   // who is added gets a confirmation by mail
	Mails   bool   // guests can be written to

	Email, NewName string // that were typed
	Key            string // of the next guest who is added
	IsAdding       bool   // somebody was added, or was not: then comes the next one

	Batch *guestBatch // those who are added next, or nil
	Lines string      // of several guests, that were typed

	Waiting *waitingPage // nil if nobody waits
}

// IsOver reports whether more are registered than the event has places for.
func (p *guestPage) IsOver() bool { return p.Tally.Most > 0 && p.Tally.Registered > p.Tally.Most }

// guestQuestion is whether somebody is to be registered though all places are taken.
type guestQuestion struct {
	Page          string // that asks
	Text, Do      string
	Email, Name   string // of who is added
	Key           string
	Member        string // who is taken back, or waits
	MovesUp       bool   // who waits
	ID, Who       string
	Query, Cursor string
}

// shownGuest is a row of the list.
type shownGuest struct {
	registration.Registrant

	Title       string // the name, or the email
	Email       string // "" if it is the title
	IsCancelled bool
	IsIn        bool
	HasName     bool   // that can be erased
	Mail        string // which the server refused, "" for none
	IsErased    bool
}

func shownGuestOf(r registration.Registrant) shownGuest {
	shown := shownGuest{Registrant: r, Title: clip.Text(cmp.Or(r.Name, r.Email, "A deleted member"), maxLabel), IsCancelled: !r.CancelledAt.IsZero(), IsIn: !r.CheckedInAt.IsZero()}
	if r.IsWalkIn() {
		shown.HasName, shown.IsErased = r.Name != "" && shown.IsCancelled, r.Name == ""
		shown.Title = clip.Text(cmp.Or(r.Name, "An erased guest"), maxLabel)
	}
	if r.Name != "" {
		shown.Email = r.Email
	}
	return shown
}

// guests has who has registered.
func (v *view) guests() (*registration.GuestList, error) {
	guests, err := v.site.Events.Guests()
	return guests, away(err)
}

// showGuestList shows a page of the list.
func showGuestList(ctx context.Context, v *view) (any, error) {
	query := v.request.URL.Query()
	page, err := v.guestList(ctx, query)
	if err != nil {
		return nil, err
	}
	page.Notice, page.Undo, err = v.guestDone(ctx, page.ID)
	done := query.Get("done")
	page.IsAdding = page.Notice != nil && (done == "add" || done == "again")
	return page, err
}

// guestList reads a page of the list of an event, as a query or a form says.
func (v *view) guestList(ctx context.Context, asked url.Values) (*guestPage, error) {
	id, text, after := asked.Get("event"), asked.Get("q"), asked.Get("after")
	guests, err := v.guests()
	if err != nil {
		return nil, err
	}
	e, err := v.events.Find(ctx, v.site.Name, id)
	if err != nil {
		return nil, v.explain(err)
	}
	v.zone = e.When().Zone()
	page := &guestPage{ID: e.ID, Name: nameOf(e.Values), When: dateOf(e), Status: string(e.Status), Query: clip.Text(text, maxTitle), After: clip.Text(after, maxTitle)}
	found, err := guests.Registrants(ctx, v.site.Name, id, registration.RegistrantQuery{Text: page.Query, After: page.After, Most: maxListedGuests})
	if err != nil {
		return nil, v.explain(err)
	}
	page.Tally = found.Tally
	for _, r := range found.Registrants {
		g := shownGuestOf(r)
		if r.Refused != nil && v.site.Events.SendsMail && !g.IsCancelled {
			g.Mail = cmp.Or(mailNames[r.Refused.Kind], "Mail") + ": " + clip.Text(r.Refused.Text, maxMessage)
		}
		page.Guests, page.Erases = append(page.Guests, g), page.Erases || g.HasName
	}
	if found.Next != "" {
		page.Next = "guest-list?" + url.Values{"event": {id}, "q": {page.Query}, "after": {found.Next}}.Encode()
	}
	page.Key = rand.Text()
	page.IsTold = v.site.Events.SendsMail && e.Status == events.Published && !e.Terms().IsOver(v.events.Now())
	page.Mails = v.site.Events.SendsMail
	page.CSV = "events/" + id + "/registrations.csv"
	if err := registration.MayBeAdded(e.Terms()); err != nil {
		page.Refused = api.FailureOf(err).Message
	}
	page.Waiting, err = v.waiting(ctx, guests, page, e.Terms().Access == events.AccessPaid, asked.Get("waiting"))
	return page, err
}

// guestsDone are what was done with a guest, in words.
var guestsDone = map[string]string{
	"add":     "was added.",
	"again":   "is registered already.",
	"remove":  "was removed.",
	"restore": "is registered again.",
	"walk-in": "is checked in.",
	"erase":   "The name was erased.",
	"move-up": "has a place now.",
	"leave":   "The guest was removed from the waiting list.",
}

// mailNames are mails to guests, by their kind.
var mailNames = map[string]string{
	mails.Confirmation: "Confirmation",
	mails.Reminder:     "Reminder",
	mails.Moved:        "New date or place",
	mails.Cancelled:    "The event is cancelled",
	mails.Place:        "Place from the waiting list",
	mails.Invitation:   "Offer of a place",
	mails.FromStaff:    "Message",
}

// guestDone reads from the query what was just done, nil for nothing, and who was removed.
func (v *view) guestDone(ctx context.Context, event string) (*notice, string, error) {
	query := v.request.URL.Query()
	text, ok := guestsDone[query.Get("done")]
	if !ok || !v.isOwnLink() {
		return nil, "", nil
	}
	if query.Get("done") == "leave" {
		return &notice{Text: text}, "", nil
	}
	guests, err := v.guests()
	if err != nil {
		return nil, "", err
	}
	r, err := guests.Registrant(ctx, v.site.Name, event, query.Get("member"))
	if errors.Is(err, registration.ErrNoRegistrant) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", away(err)
	}
	removed := ""
	if query.Get("done") == "remove" && !r.CancelledAt.IsZero() {
		removed = r.Member
	}
	if query.Get("done") == "erase" {
		return &notice{Text: text}, "", nil
	}
	return &notice{Of: shownGuestOf(r).Title, Text: text}, removed, nil
}

// A guest without an email is no slip of the Enter key.
var (
	errNoEmail   = api.Invalid("Write an email, or press Add without email.")
	errWithEmail = api.Invalid("There is an email. Press Add, or remove the email.")
)

// changeGuestList does what a form says.
func changeGuestList(ctx context.Context, v *view) (any, error) {
	form := v.request.PostForm
	id, do := form.Get("event"), form.Get("do")
	switch do {
	case "read":
		return readGuestForm(ctx, v)
	case "several":
		return addSeveral(ctx, v)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout) // only several guests may take longer
	defer cancel()
	guests, err := v.guests()
	if err != nil {
		return nil, err
	}
	of, isNew, err := v.changeGuest(ctx, guests, id, do)
	if errors.Is(err, errForm) {
		return nil, err
	}
	if err != nil {
		return v.guestRefused(ctx, "guest-list", err)
	}
	if !isNew {
		do = "again"
	}
	next := url.Values{"event": {id}, "done": {strings.TrimSuffix(do, "-name")}, "member": {of.Member}}
	for _, field := range []string{"q", "after", "waiting"} {
		if value := form.Get(field); value != "" {
			next.Set(field, clip.Text(value, maxTitle))
		}
	}
	return redirection(next.Encode()), nil
}

// changeGuest does what a form says of one guest, and reports whether they were not registered before. Errors: errForm, errNoEmail,
// errWithEmail, those of the guest list.
func (v *view) changeGuest(ctx context.Context, guests *registration.GuestList, id, do string) (of registration.Registrant, isNew bool, err error) {
	form := v.request.PostForm
	member, isOver := form.Get("member"), form.Get("over") != ""
	switch do {
	case "add", "add-name":
		switch isAlone := strings.TrimSpace(form.Get("email")) == ""; {
		case isAlone && do == "add":
			return of, false, errNoEmail
		case !isAlone && do == "add-name":
			return of, false, errWithEmail
		}
		return v.site.Events.AddRegistrant(ctx, id, registration.Addition{Email: form.Get("email"), Name: form.Get("name"), By: v.member.Name, OverLimit: isOver, Key: form.Get("key")})
	case "move-up":
		return guests.MoveUp(ctx, v.site.Name, id, member, v.member.Name, isOver)
	case "remove":
		of, err = guests.Remove(ctx, v.site.Name, id, member, v.member.Name)
	case "restore":
		of, _, err = guests.Restore(ctx, v.site.Name, id, member, isOver)
	case "erase":
		of, err = guests.EraseName(ctx, v.site.Name, id, member)
	case "leave":
		err = guests.RemoveWaiting(ctx, v.site.Name, id, member)
	default:
		err = errForm
	}
	return of, true, err
}

// guestRefused is the list for a page, with why something was not done, or the question whether to do
// it though all places are taken.
func (v *view) guestRefused(ctx context.Context, name string, err error) (*guestPage, error) {
	form := v.request.PostForm
	failure := api.FailureOf(err)
	if errors.Is(err, events.ErrNotFound) || failure.IsUnforeseen || errors.Is(err, context.Canceled) {
		return nil, v.explain(err)
	}
	page, listErr := v.guestList(ctx, form)
	if listErr != nil {
		return nil, listErr
	}
	page.Email, page.NewName = clip.Text(form.Get("email"), maxTitle), clip.Text(form.Get("name"), maxTitle)
	page.Key = cmp.Or(clip.Text(form.Get("key"), maxLabel), page.Key) // the guest may have been added
	if full, isFull := errors.AsType[*registration.FullError](err); isFull {
		page.Question = &guestQuestion{
			Page: name, ID: page.ID, Text: full.Describe().Message, Do: form.Get("do"), Email: page.Email, Name: page.NewName, Key: page.Key, Member: form.Get("member"),
			Who: clip.Text(cmp.Or(page.NewName, page.Email), maxLabel), Query: page.Query, Cursor: page.After, MovesUp: form.Get("do") == "move-up",
		}
		if member := page.Question.Member; member != "" {
			guests, err := v.guests()
			if err != nil {
				return nil, err
			}
			if page.Question.Who, err = v.titleOf(ctx, guests, page.ID, member, page.Question.MovesUp); err != nil {
				return nil, v.explain(err)
			}
		}
		return page, nil
	}
	page.IsAdding = strings.HasPrefix(form.Get("do"), "add")
	if failure.IsLogged || failure.Outcome == api.Failed {
		v.desk.log(v, name, err)
	}
	page.Notice = &notice{Text: clip.Text(failure.Message, maxMessage), IsProblem: true}
	return page, nil
}
