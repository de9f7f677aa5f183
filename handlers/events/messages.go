package events

import (
	"context"
	"net/http"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
)

// This file is what staff write to all guests of an event (docs/mail.md#messages).

// These are the responses.
type (
	messagesResponse struct {
		Messages   []messageResponse `json:"messages"`   // the last one first
		Recipients int               `json:"recipients"` // of one that is sent now
	}

	messageResponse struct {
		ID         string `json:"id"`
		Subject    string `json:"subject"`
		Text       string `json:"text"`
		SentBy     string `json:"sent_by"`
		SentAt     string `json:"sent_at"`
		Recipients int    `json:"recipients"`
		Sent       int    `json:"sent"`
		Refused    int    `json:"refused"`
		Pending    int    `json:"pending"`
	}
)

var (
	errNoMessage = api.Invalid(`Send JSON such as {"subject": "Where to park", "text": "Use the north gate."}.`)
	errNoKey     = api.Invalid("Send the header Idempotency-Key: a message with the same key is sent once.")
)

// draft reads a message.
func (a *eventRequest) draft() (mails.Draft, error) {
	var body struct {
		Subject string `json:"subject"`
		Text    string `json:"text"`
	}
	err := a.read(&body, errNoMessage)
	return mails.Draft(body), err
}

// messages answers with those that were sent.
func (a *eventRequest) messages(ctx context.Context) (api.Response, error) {
	if _, err := a.service.Find(ctx, a.site.Name, a.id); err != nil {
		return api.Response{}, err
	}
	service, err := a.site.OpenMails()
	if err != nil {
		return api.Response{}, err
	}
	response := messagesResponse{Messages: []messageResponse{}}
	if response.Recipients, _, err = service.Reach(ctx, a.site.Name, a.id); err != nil {
		return api.Response{}, err
	}
	list, err := service.Messages(ctx, a.site.Name, a.id)
	for _, m := range list {
		response.Messages = append(response.Messages, messageOf(m))
	}
	return api.Response{Body: response}, err
}

func messageOf(m mails.Message) messageResponse {
	return messageResponse{m.ID, m.Subject, m.Text, m.By, api.Time(m.At), m.Recipients, m.Sent, m.Refused, m.Pending}
}

// sendMessage sends a message once for each key of a member of the staff.
func (a *eventRequest) sendMessage(ctx context.Context) (api.Response, error) {
	draft, err := a.draft()
	if err != nil {
		return api.Response{}, err
	}
	key, err := a.idempotencyKey()
	if err == nil && key == "" {
		err = errNoKey
	}
	if err != nil {
		return api.Response{}, err
	}
	service, err := a.site.OpenMails()
	if err != nil {
		return api.Response{}, err
	}
	m, isNew, err := service.Send(ctx, a.site.Name, a.id, a.Member.ID+"\x00"+key, a.Member.Name, draft)
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return api.Response{Status: status, Body: messageOf(m)}, err
}

// tryMessage sends a message to the member of the staff alone.
func (a *eventRequest) tryMessage(ctx context.Context) (api.Response, error) {
	draft, err := a.draft()
	if err != nil {
		return api.Response{}, err
	}
	service, err := a.site.OpenMails()
	if err == nil {
		err = service.Try(ctx, a.site.Name, a.id, a.Member, draft)
	}
	return api.Response{Status: http.StatusNoContent}, err
}
