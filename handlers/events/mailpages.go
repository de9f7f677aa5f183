package events

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
)

// This file is the pages to which the links of mails to registrants lead: one cancels a registration, the other stops such mails
// (docs/mail.md#links). They work without a session and without JavaScript. A scanner that opens links changes nothing: that
// takes a press.

var (
	//go:embed mailpage.html
	mailPageHTML string
	//go:embed mailpage.css
	mailPageStyle string

	mailPageTemplate = template.Must(template.New("page").Parse(mailPageHTML))
	mailPagePolicy   = func() string {
		sum := sha256.Sum256([]byte(mailPageStyle))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	}()
	mailPageHeader = map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "private, no-store", "Content-Security-Policy": mailPagePolicy,
		"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex",
	}
	mailPageMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions}
)

// mailPage is what such a page says.
type mailPage struct {
	Language, Dir string
	Style         template.CSS
	Name, Address string // of the event
	Message       string
	Press         string // the button's label, "" for none
	View          string // the link's
}

// mailPageOf is which page a path has, and the ID of its event; "" for none.
func (h *Registration) mailPageOf(address string) (page, event string) {
	rest, below := strings.CutPrefix(strings.TrimSuffix(address, "/"), h.Path+"/")
	event, page = path.Split(rest)
	event = strings.TrimSuffix(event, "/")
	if !below || event == "" || strings.Contains(event, "/") || page != mails.CancelPage && page != mails.StopPage {
		return "", ""
	}
	return page, event
}

// serveMailPage answers a registrant who comes by the link of a mail.
func (h *Registration) serveMailPage(w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) api.Outcome {
	header := w.Header()
	if wait := h.Limiter.Take(r.Context(), ratelimit.AddrKey(address)); wait > 0 {
		return h.fail(w, r, site, api.RateLimited("requests", wait))
	}
	if !slices.Contains(mailPageMethods, r.Method) {
		api.Allow(header, mailPageMethods...)
		return h.fail(w, r, site, api.ErrNotAllowed)
	}
	if site.Readers == nil {
		return h.fail(w, r, site, errNotServed)
	}
	ctx, cancel := context.WithTimeout(r.Context(), registrationTimeout)
	defer cancel()
	name, event := h.mailPageOf(r.URL.Path)
	member, ok := registration.MemberOf(site.Readers.LinkKey(), event, r.URL.Query().Get("token"))
	shown, status, outcome := mailPage{Language: languageOf(r)}, http.StatusNotFound, api.NotFound
	if ok {
		var err error
		if shown, ok, err = h.mailPage(ctx, r, site, name, event, member); err != nil {
			return h.fail(w, r, site, storeAway(err))
		}
	}
	if ok {
		status, outcome = http.StatusOK, api.Done
	} else {
		shown.Message = messaging.MailWordsIn(shown.Language).LinkOver
	}
	if _, isKnown := messaging.Language(shown.Language); !isKnown {
		shown.Language = messaging.DefaultLanguage
	}
	shown.Dir, shown.Style, shown.View = messaging.Direction(shown.Language), template.CSS(mailPageStyle), messaging.MailWordsIn(shown.Language).ViewEvent
	for name, value := range mailPageHeader {
		header.Set(name, value)
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		if err := mailPageTemplate.Execute(w, shown); err != nil && ctx.Err() == nil {
			h.Logger.Debug("a reader has left", zap.String("site", site.Name), zap.Error(err))
		}
	}
	return outcome
}

// mailPage does what a registrant has pressed, and says how it stands. ok is false if they are not known any more. Errors: those of the
// store.
func (h *Registration) mailPage(ctx context.Context, r *http.Request, site RegistrationSite, name, event, member string) (shown mailPage, ok bool, err error) {
	registrations, err := site.Registrations()
	if err != nil {
		return shown, false, err
	}
	guest, err := registrations.Registrant(ctx, site.Name, event, member)
	if err != nil {
		return shown, false, ignore(err, registration.ErrNoRegistrant)
	}
	shown.Language = guest.Language
	if shown.Language == "" {
		shown.Language = languageOf(r)
	}
	if shown.Name, shown.Address, err = h.nameOf(ctx, site, event); err != nil {
		return shown, false, ignore(err, events.ErrNotFound)
	}
	words, labels := messaging.MailWordsIn(shown.Language), messaging.LabelsOf(shown.Language)
	if r.Method == http.MethodPost && name == mails.CancelPage {
		_, err = registrations.CancelByMail(ctx, site.Name, event, guest)
	} else if r.Method == http.MethodPost {
		err = registrations.Quieten(ctx, site.Name, event, member)
	}
	if err != nil {
		return shown, false, err
	}
	found, err := registrations.Find(ctx, site.Name, event, registration.Reader{Member: member})
	if err != nil {
		return shown, false, ignore(err, registration.ErrNoRegistration)
	}
	switch {
	case found.State == messaging.EventPassed, found.Reason == messaging.IsCancelled:
		shown.Message = messaging.Message(shown.Language, found.State, found.Reason)
	case found.RegisteredAt.IsZero():
		shown.Message = words.CancelDone
	case name == mails.CancelPage:
		shown.Message, shown.Press = labels.Ask, labels.Cancel
	case r.Method == http.MethodPost:
		shown.Message = words.NoMoreDone
	default:
		shown.Press = words.NoMore
	}
	return shown, true, nil
}

// nameOf is what an event is called, and the address of its page.
func (h *Registration) nameOf(ctx context.Context, site RegistrationSite, event string) (name, address string, err error) {
	feed, err := site.Feed()
	if err != nil {
		return "", "", err
	}
	response, err := feed.Event(ctx, site.Name, event, events.JSON)
	if err != nil {
		return "", "", err
	}
	defer response.Close()
	var public struct{ Name, URL string }
	if err := json.NewDecoder(response).Decode(&public); err != nil {
		return "", "", err
	}
	if u, err := url.Parse(public.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" {
		public.URL = ""
	}
	return public.Name, public.URL, nil
}
