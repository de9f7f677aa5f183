package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
)

// This file sends what an editor writes to all guests of an event (docs/mail.md#messages).

// messagePage is what an editor writes, or how it looks before it is sent, and what was sent before.
type messagePage struct {
	Notice *notice

	ID, Name, When, Status string

	Refused string // why nobody can be written to, "" if somebody can
	mails.Draft
	Key              string // of the message
	Recipients       string // in words
	Others           string // who does not get it, "" for nobody
	MaxText, MaxLine int

	Shown *shownMessage // nil while it is written
	Sent  []mails.Message
}

// shownMessage is a message as guests get it.
type shownMessage struct {
	Page  string // of the mail, for an attribute
	Email string // of who writes it, "" if the platform names none
}

func (v *view) mails() (*mails.Service, error) {
	service, err := v.site.Events.OpenMails()
	return service, v.explain(err)
}

func showGuestMessage(ctx context.Context, v *view) (any, error) {
	query := v.request.URL.Query()
	page, err := v.messagePage(ctx, query.Get("event"))
	if err != nil || !v.isOwnLink() {
		return page, err
	}
	switch query.Get("done") {
	case "send":
		page.Notice = &notice{Text: "The message is on its way."}
	case "again":
		page.Notice = &notice{Text: "This message was sent before, so it was not sent again."}
	}
	return page, nil
}

func (v *view) messagePage(ctx context.Context, id string) (*messagePage, error) {
	service, err := v.mails()
	if err != nil {
		return nil, err
	}
	e, err := v.events.Find(ctx, v.site.Name, id)
	if err != nil {
		return nil, v.explain(err)
	}
	v.zone, v.stylesAttributes = e.When().Zone(), true
	page := &messagePage{
		ID: e.ID, Name: nameOf(e.Values), When: dateOf(e), Status: string(e.Status), Key: rand.Text(), MaxText: mails.MaxText, MaxLine: mails.MaxSubject,
	}
	if page.Sent, err = service.Messages(ctx, v.site.Name, id); err != nil {
		return nil, away(err)
	}
	recipients, quiet, err := service.Reach(ctx, v.site.Name, id)
	if err != nil {
		return nil, away(err)
	}
	registered, err := v.registeredFor(ctx, id)
	if err != nil {
		return nil, err
	}
	page.Recipients = guestsInWords(recipients)
	var others []string
	if alone := registered - recipients - quiet; alone > 0 {
		others = append(others, guestsOf(alone, "has", "have")+" no email.")
	}
	if quiet > 0 {
		others = append(others, guestsOf(quiet, "wants", "want")+" no such mails.")
	}
	page.Others = strings.Join(others, " ")
	switch {
	case e.Status == events.Draft:
		page.Refused = api.FailureOf(mails.ErrNotPublic).Message
	case recipients == 0:
		page.Refused = api.FailureOf(mails.ErrNoRecipients).Message
	}
	return page, nil
}

func (v *view) registeredFor(ctx context.Context, event string) (int, error) {
	guests, err := v.guests()
	if err != nil {
		return 0, err
	}
	of, err := guests.Tally(ctx, v.site.Name, event)
	return of.Registered, v.explain(err)
}

// changeGuestMessage previews a message, tries it, or sends it.
func changeGuestMessage(ctx context.Context, v *view) (any, error) {
	form := v.request.PostForm
	id, do, draft := form.Get("event"), form.Get("do"), mails.Draft{Subject: form.Get("subject"), Text: form.Get("text")}
	service, err := v.mails()
	if err != nil {
		return nil, err
	}
	done := ""
	switch do {
	case "edit", "preview":
	case "try":
		if err = service.Try(ctx, v.site.Name, id, v.member, draft); err == nil {
			done = fmt.Sprintf("The message was sent to you alone, to %s.", v.member.Email)
		}
	case "send":
		_, isNew, err := service.Send(ctx, v.site.Name, id, form.Get("key"), v.member.Name, draft)
		switch {
		case err == nil && isNew:
			return redirection(url.Values{"event": {id}, "done": {"send"}}.Encode()), nil
		case err == nil:
			return redirection(url.Values{"event": {id}, "done": {"again"}}.Encode()), nil
		}
		return v.messageAgain(ctx, service, draft, "", err)
	default:
		return nil, errForm
	}
	return v.messageAgain(ctx, service, draft, done, err)
}

// messageAgain shows a message as guests get it, or what was written, with what was done or why it was not.
func (v *view) messageAgain(ctx context.Context, service *mails.Service, draft mails.Draft, done string, err error) (any, error) {
	form := v.request.PostForm
	page, pageErr := v.messagePage(ctx, form.Get("event"))
	if pageErr != nil {
		return nil, pageErr
	}
	page.Draft = draft
	if key := form.Get("key"); key != "" && !errors.Is(err, mails.ErrOtherMessage) {
		page.Key = clip.Text(key, maxLabel)
	}
	if done != "" {
		page.Notice = &notice{Text: done}
	}
	if form.Get("do") != "edit" {
		letter, previewErr := service.Preview(ctx, v.site.Name, page.ID, draft)
		if previewErr == nil {
			html := strings.Replace(letter.HTML, "<style>", `<style nonce="`+v.nonce+`">`, 1)
			page.Shown = &shownMessage{html, v.member.Email}
			page.Subject = letter.Subject
			v.showIcon(ctx)
		}
		err = cmp.Or(err, previewErr)
	}
	if err == nil {
		return page, nil
	}
	failure := api.FailureOf(err)
	if failure.IsUnforeseen || errors.Is(err, context.Canceled) || errors.Is(err, events.ErrNotFound) {
		return nil, v.explain(err)
	}
	page.Notice = &notice{Text: clip.Text(failure.Message, maxMessage), IsProblem: true}
	return page, nil
}

// showIcon lets the page show the publication's icon, which is part of mails.
func (v *view) showIcon(ctx context.Context) {
	of, _ := v.events.Posts.ForMails(ctx, v.site.Name)
	if u, err := url.Parse(of.Icon); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && !strings.ContainsAny(u.Host, "; ,'\"") {
		v.pictures += " " + u.Scheme + "://" + u.Host
	}
}
