package events

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file answers guests, who register by the link of a mail.

const (
	maxEmail      = 254 // bytes
	maxMemberName = 191 // code points, as Ghost counts
)

// Reasons of failures, beside those of a closed registration.
const (
	invalidEmail = "invalid_email"
	invalidName  = "invalid_name"
	unknownEmail = "unknown_email"
	tooMany      = "too_many"
)

// linkFailure is the body of a failure that a page tells apart.
type linkFailure struct {
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

// serveLink has a link mailed to a guest.
func (h *Registration) serveLink(w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) api.Outcome {
	ctx, cancel := context.WithTimeout(r.Context(), registrationTimeout)
	defer cancel()
	asked, err := h.admit(ctx, w, r, site, address)
	if err != nil {
		return h.fail(w, r, site, err)
	}
	if asked.reader.Member != "" { // they need none
		found, err := asked.registrations.Find(ctx, site.Name, asked.slug, asked.reader)
		if err != nil {
			return h.fail(w, r, site, storeAway(err))
		}
		api.WriteJSON(w, http.StatusOK, h.shown(r, site, found))
		return api.Done
	}
	words := cmp.Or(labelsIn(r), &english)
	refuse := func(message, reason string) api.Outcome {
		api.WriteJSON(w, http.StatusUnprocessableEntity, linkFailure{message, reason})
		return api.Rejected
	}
	if !mayBeEmail(asked.email) {
		return refuse(words.NoEmail, invalidEmail)
	}
	if utf8.RuneCountInString(asked.name) > maxMemberName || !api.IsText(asked.name) || strings.ContainsFunc(asked.name, unicode.IsControl) {
		return refuse(words.NoName, invalidName)
	}
	wants := registration.Wishes{NoNews: asked.newsletters != nil && !*asked.newsletters, Waits: asked.waits}
	to, err := asked.registrations.Invite(ctx, site.Name, asked.slug, asked.email, wants, asked.readers.LinkKey())
	if err != nil {
		return h.fail(w, r, site, storeAway(err))
	}
	if to.Page == "" {
		status, outcome := registrationStatus(http.MethodPut, true, false, to.Registration)
		api.WriteJSON(w, status, h.shown(r, site, to.Registration))
		return outcome
	}
	if asked.name == "" && to.Terms.AskName == manifest.NameIsRequired && to.MaySignUp {
		return refuse(words.NoName, invalidName)
	}
	if wait := h.takeMail(ctx, site.Name, asked.email, address); wait > 0 {
		return tooManyMails(w, r, wait)
	}
	link := platform.SignInLink{Email: asked.email, Name: asked.name, Page: to.Page, MaySignUp: to.MaySignUp, Sender: address}
	if wants.NoNews {
		link.Newsletters = []string{}
	} else if asked.newsletters != nil {
		if all := asked.readers.Newsletters(ctx); !all.AreDefault {
			link.Newsletters = all.Names
		}
	}
	isSent, err := asked.readers.SendLink(ctx, link)
	switch {
	case errors.Is(err, platform.ErrNoReader):
		return refuse(words.UnknownEmail, unknownEmail)
	case errors.Is(err, platform.ErrTooManyMails):
		return tooManyMails(w, r, mailsRetry)
	case err != nil:
		return h.fail(w, r, site, err)
	}
	shown := h.shown(r, site, to.Registration)
	if shown.Labels != nil && !isSent {
		shown.Labels.Sent = shown.Labels.SentToMember
	}
	api.WriteJSON(w, http.StatusAccepted, shown)
	return api.Done
}

// IsMailedLink reports whether a request may be that of a link which was mailed to a guest.
func IsMailedLink(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.RawQuery, registration.LinkParameter)
}

// RedirectToEvent has the response to a mailed link lead to the page of its event. The platform leads elsewhere if the link
// was used before or is too old, and where it welcomes new members on a page.
func RedirectToEvent(w http.ResponseWriter, r *http.Request, readers *api.Readers) http.ResponseWriter {
	return &eventRedirect{w, r.URL, readers}
}

type eventRedirect struct {
	http.ResponseWriter
	link    *url.URL
	readers *api.Readers
}

func (w *eventRedirect) WriteHeader(status int) {
	if status >= 300 && status < 400 {
		if page := w.readers.LinkPage(w.link, w.Header()); page != "" {
			w.Header().Set("Location", page)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *eventRedirect) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// takeMail takes a mail from the allowances of the network that it is asked for from and of its recipient. Who has used up
// the one of the network takes nothing from anybody else's.
func (h *Registration) takeMail(ctx context.Context, site, email string, address netip.Addr) (wait time.Duration) {
	network := ratelimit.NetworkKey(address)
	if wait = h.Networks.Take(ctx, ratelimit.TextKey(site, string(network[:]))); wait > 0 {
		return wait
	}
	return h.Recipients.Take(ctx, ratelimit.TextKey(site, emailaddr.Key(email)))
}

func tooManyMails(w http.ResponseWriter, r *http.Request, wait time.Duration) api.Outcome {
	f := api.FailureOf(api.RateLimited("mails", wait))
	f.SetRetryAfter(w.Header())
	api.WriteJSON(w, f.Status, linkFailure{cmp.Or(labelsIn(r), &english).TooMany, tooMany})
	return f.Outcome
}

// english are the labels for those who say no language.
var english = messaging.LabelsOf(messaging.DefaultLanguage)

// mailsRetry is when a platform that sends too many mails is to be asked again: the least that
// Ghost waits.
const mailsRetry = 10 * time.Minute

// mayBeEmail leaves the rest to the platform.
func mayBeEmail(text string) bool {
	local, domain, found := strings.Cut(text, "@")
	return found && local != "" && strings.Contains(domain, ".") && len(text) <= maxEmail && api.IsText(text) && !strings.ContainsAny(text, " \t\r\n,;<>\"")
}
