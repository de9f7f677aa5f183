package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file does what forms of the event pages ask for.

var errNoQuestion = refusal(http.StatusNotFound, "The desk cannot do that with an event. Go back to Events.")

// eventQuestions are what is asked, by what is to be done. %s is the platform.
var eventQuestions = map[string]eventQuestion{
	"unpublish": {Title: "Unpublish", Text: "Readers do not find it any more. Its post becomes a draft in %s, and keeps its text.", Button: "Unpublish the event"},
	"cancel":    {Title: "Cancel", Text: "Its page stays where it is, and says that the event is cancelled. Nobody can register any more.", Button: "Cancel the event"},
	"delete":    {Title: "Delete", Text: "The event is removed here. Its post, if it has one, stays in %s as a draft, with its text and without the event's data.", Button: "Delete the event"},
	"duplicate": {Title: "Duplicate", Text: "A new draft gets what this event has, without its slug, on another date. This event stays as it is. The new one gets a post of its own.", Button: "Duplicate the event", IsSafe: true},
}

// ask shows the question before something is done.
func (r *eventsView) ask(ctx context.Context, id, do string) (any, error) {
	question, ok := eventQuestions[do]
	if !ok && do != publishSeries {
		return nil, errNoQuestion
	}
	e, err := r.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if do == publishSeries {
		return r.askSeries(ctx, e, r.eventDone(id))
	}
	if question.Guests, err = r.guestsAsked(ctx, e, do); err != nil {
		return nil, err
	}
	if do == "duplicate" {
		question.Copy = copyOf(e)
	}
	return eventsPage{Question: r.about(e, do, question)}, nil
}

// about completes a question about an event.
func (r *eventsView) about(e events.Event, do string, question eventQuestion) *eventQuestion {
	question.ID, question.Name, question.Revision, question.Do = e.ID, nameOf(e.Values), e.Revision, do
	question.Text = strings.ReplaceAll(question.Text, "%s", r.site.Kind.Title)
	question.GuestLinks = r.guestLinks(e)
	return &question
}

// copyAgain asks for a copy once more, with what was typed and what is wrong with that.
func (r *eventsView) copyAgain(ctx context.Context, id string, problems []manifest.Problem) (any, error) {
	e, err := r.find(ctx, id)
	if err != nil {
		return nil, err
	}
	question := eventQuestions["duplicate"]
	question.Copy = copyOf(e)
	shown := eventsPage{Question: r.about(e, "duplicate", question)}
	if others := question.Copy.retype(r.request.PostForm, problems); len(others) > 0 {
		shown.Notice = &notice{Text: clip.Text(others[0].Message, maxMessage), IsProblem: true}
	}
	return shown, nil
}

// guestsAsked says how many are registered for an event, and what they learn if something is done to it, "" for nothing.
func (r *eventsView) guestsAsked(ctx context.Context, e events.Event, do string) (string, error) {
	if _, ok := guestsLearn[do]; ok {
		said, err := r.guestsLearn(ctx, e, do)
		if said != "" && do == "unpublish" {
			said += r.cancelInstead(e)
		}
		return said, err
	}
	if do != "delete" {
		return "", nil
	}
	guests, err := r.guests()
	if err != nil {
		return "", err
	}
	of, err := guests.Tally(ctx, r.site.Name, e.ID)
	switch {
	case err != nil:
		return "", r.explain(err)
	case of.Registered+of.Cancelled == 0:
		return "", nil
	}
	said := fmt.Sprintf("%d registered and %d cancelled. Their registrations are deleted too, with who was checked in. Download the guest list first if you need it.", of.Registered, of.Cancelled)
	if of.Waiting > 0 {
		said += fmt.Sprintf(" %s for a place.", guestsInWords(of.Waiting)+plural(of.Waiting, " waits", " wait"))
	}
	if of.Registered > 0 {
		said += " Nobody gets a mail: tell them." + r.cancelInstead(e)
	}
	return said, nil
}

// cancelInstead says that guests are told by mail of an event that is cancelled, "" if they are not.
func (r *eventsView) cancelInstead(e events.Event) string {
	if !r.site.Events.SendsMail || e.Status != events.Published || e.Terms().IsOver(r.events.Now()) {
		return ""
	}
	return " Cancel the event first, and they are told by mail."
}

// retype shows the editor with another type, and what was typed.
func (r *eventsView) retype(ctx context.Context) (any, error) {
	of, err := r.read(r.request.PostForm)
	if err != nil {
		return nil, err
	}
	e, err := r.started(ctx, of)
	if err != nil {
		return nil, err
	}
	if of.id != "" {
		e.Revision = of.revision
	}
	return r.editor(ctx, input{event: e, typeKey: of.typeKey, values: of.values, once: of.once})
}

// started finds the event that a form is about, and makes a new one if that is not kept yet.
func (r *eventsView) started(ctx context.Context, of typed) (events.Event, error) {
	if of.id != "" {
		return r.find(ctx, of.id)
	}
	made, err := r.events.Made(ctx, r.site.Name, r.member.ID, of.once) // if only the response was lost
	switch {
	case errors.Is(err, events.ErrNotFound):
		return events.Event{Status: events.Draft}, nil
	case err == nil && !made.IsUntouched():
		made.Revision = -1 // so that the form overwrites nothing
	}
	return made, err
}

// save keeps what was typed, and publishes it or gives it a post for its text if that is to be done.
func (r *eventsView) save(ctx context.Context, do string) (any, error) {
	of, err := r.read(r.request.PostForm)
	if err != nil {
		return nil, err
	}
	t, ok := events.NewType(r.declared, of.typeKey)
	if !ok {
		return nil, errNoType
	}
	e, err := r.started(ctx, of)
	if err != nil {
		return nil, err
	}
	if r.visitor.IsRecalled && do == "save" && e.Status == events.Draft { // which is for this store alone
		return nil, api.ErrStaffUnknown.For(r.site.Kind.Title)
	}
	before := e
	draft := events.Edit{Theme: r.theme, Type: of.typeKey, Values: of.values}
	shown := input{event: e, typeKey: of.typeKey, values: of.values, once: of.once}
	if of.id == "" {
		e, err = r.events.CreateOnce(ctx, r.site.Name, r.member.ID, cmp.Or(of.once, rand.Text()), draft)
		if used, ok := errors.AsType[*events.KeyUsedError](err); ok && used.ID != "" { // of the same form another event was made
			shown.event, err = e, events.ErrChanged
		}
		if err == nil && do == "publish" && e.Post.ID != "" && e.Status != events.Published { // which somebody has taken back since
			shown.event, err = e, events.ErrChanged
		}
	} else {
		e, err = r.events.Save(ctx, r.site.Name, of.id, of.revision, draft, t)
	}
	if err == nil {
		shown.event = e
		shown.isSaved = true
		switch do {
		case "publish":
			e, err = r.events.Publish(ctx, r.site.Name, e.ID, e.Revision, t)
		case "write":
			e, err = r.events.Write(ctx, r.site.Name, e.ID, e.Revision, t)
		}
	}
	switch {
	case err != nil:
	case do == "write" && e.Post.ID != "" && e.Post.Edit != "":
		return adminPath(e.Post.Edit), nil
	default:
		if hasMoved := !lastMove(e).Equal(lastMove(before)); hasMoved && do == "save" {
			do = "move"
		} else if hasMoved && do == "publish" { // once more
			do = "publish-moved"
		}
		return r.done(ctx, e, do)
	}
	return r.refused(ctx, shown, of, err)
}

// lastMove is when a published event last got another date or place, zero for never.
func lastMove(e events.Event) time.Time {
	if len(e.Moves) == 0 {
		return time.Time{}
	}
	return e.Moves[len(e.Moves)-1].At
}

// done shows an event to which something was done. That is another request, unless the platform
// would be asked in vain whose that is.
func (r *eventsView) done(ctx context.Context, e events.Event, do string) (any, error) {
	if !r.visitor.IsRecalled {
		return redirection(url.Values{"event": {e.ID}, "done": {do}}.Encode()), nil
	}
	said := r.toldOf(ctx, e, do)
	said.Text = strings.ReplaceAll("%s does not answer. What you did is kept here, and sent to %s as soon as it responds. ", "%s", r.site.Kind.Title) + said.Text
	return r.editor(ctx, input{event: e, typeKey: e.Type, values: e.Values, notice: said, isSaved: true})
}

// refused shows the editor with what was typed, and why it was not kept or published.
func (r *eventsView) refused(ctx context.Context, shown input, of typed, err error) (any, error) {
	if invalid, ok := errors.AsType[*events.InvalidError](err); ok {
		shown.problems = invalid.Problems
		return r.editor(ctx, shown)
	}
	if errors.Is(err, events.ErrChanged) {
		now, err := r.find(ctx, shown.event.ID)
		t, _ := events.NewType(r.declared, shown.typeKey)
		if err != nil {
			return nil, err
		}
		shown.conflict, shown.event = theirs(now, of.values, t), now
		shown.event.Revision = cmp.Or(of.revision, -1) // so that the form overwrites nothing
		return r.editor(ctx, shown)
	}
	if failure := api.FailureOf(err); !failure.IsUnforeseen && !errors.Is(err, context.Canceled) && !errors.Is(err, events.ErrNotFound) {
		shown.notice = &notice{Text: clip.Text(failure.Message, maxMessage), IsProblem: true}
		return r.editor(ctx, shown)
	}
	return nil, r.explain(err)
}

// change does what was confirmed.
func (r *eventsView) change(ctx context.Context, do string) (any, error) {
	form, site := r.request.PostForm, r.site.Name
	id := form.Get("event")
	revision, err := revisionOf(form)
	if err != nil {
		return nil, err
	}
	var e events.Event
	switch do {
	case "unpublish":
		e, err = r.events.Unpublish(ctx, site, id, revision)
	case "cancel":
		e, err = r.events.Cancel(ctx, site, id, revision)
	case "card":
		e, err = r.events.PutCard(ctx, site, id, revision)
	case "duplicate":
		return r.duplicate(ctx, id)
	case "delete":
		n, err := r.registered(ctx, events.Event{ID: id})
		if err != nil {
			return nil, err
		}
		if err = r.events.Delete(ctx, site, id, revision); err == nil {
			return redirection(url.Values{"done": {do}, "registered": {strconv.Itoa(n)}}.Encode()), nil
		}
		return r.unchanged(ctx, id, err)
	}
	if err == nil {
		return r.done(ctx, e, do)
	}
	return r.unchanged(ctx, id, err)
}

// duplicate makes a copy of an event, or several, as the form says.
func (r *eventsView) duplicate(ctx context.Context, id string) (any, error) {
	form, site := r.request.PostForm, r.site.Name
	key := clip.Text(form.Get("once"), maxField)
	if form.Get("date") == "" && form.Get("until") == "" {
		e, err := r.events.Duplicate(ctx, site, id, key)
		if err != nil {
			return r.unchanged(ctx, id, err)
		}
		return redirection(url.Values{"event": {e.ID}, "done": {"duplicate"}}.Encode()), nil
	}
	made, skipped, err := r.events.Copy(ctx, site, id, events.Copies{Date: form.Get("date"), Every: events.Rule(clip.Text(form.Get("every"), maxField)), Until: form.Get("until"), Key: key})
	invalid, isInvalid := errors.AsType[*events.InvalidError](err)
	switch {
	case isInvalid:
		return r.copyAgain(ctx, id, invalid.Problems)
	case err != nil:
		return r.unchanged(ctx, id, err)
	case form.Get("until") != "":
		return redirection(url.Values{"series": {id}, "view": {allTab}, "done": {"copies"}, "made": {strconv.Itoa(len(made))}, "skipped": {strconv.Itoa(len(skipped))}}.Encode()), nil
	}
	return redirection(url.Values{"event": {made[0].ID}, "done": {"copy"}}.Encode()), nil
}

// unchanged shows an event, and why something was not done to it.
func (r *eventsView) unchanged(ctx context.Context, id string, err error) (any, error) {
	var said string
	_, isUsed := errors.AsType[*events.KeyUsedError](err)
	switch failure := api.FailureOf(err); {
	case errors.Is(err, events.ErrChanged):
		said = "Somebody changed this event meanwhile, so nothing was done. This is how it is now."
	case isUsed:
		said = "The copy that was made of this before is being deleted. Choose Duplicate again to make another one."
	case errors.Is(err, events.ErrNoPost):
		said = "The event is not published, so nothing was done."
	case errors.Is(err, events.ErrNotFound) || failure.IsUnforeseen || errors.Is(err, context.Canceled):
		return nil, r.explain(err)
	default:
		said = clip.Text(failure.Message, maxMessage)
	}
	e, err := r.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.editor(ctx, input{event: e, typeKey: e.Type, values: e.Values, notice: &notice{Text: said, IsProblem: true}, isSaved: true})
}
