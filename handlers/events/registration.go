package events

import (
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Mails are sent within these limits at a site. Five let a reader ask again who has deleted a mail, and 300 a hall
// register from one address.
var (
	RecipientLimit = ratelimit.Limit{Requests: 5, Window: time.Hour}
	NetworkLimit   = ratelimit.Limit{Requests: 300, Window: 10 * time.Minute}
)

// Registration answers readers who look at the page of an event, and register there
// (docs/registration.md). All fields are required.
type Registration struct {
	// Path is where the list of events is, such as /ghost/lychgate/events.
	Path string

	// Limiter holds the allowance of each reader.
	Limiter ratelimit.Limiter

	// Recipients and Networks hold those of mails, at a site: for whom they are, and from where they are asked for. A
	// hall of people on one Wi-Fi registers, each for another recipient.
	Recipients, Networks ratelimit.Limiter

	Logger *zap.Logger
}

// RegistrationSite is what a site has for it.
type RegistrationSite struct {
	Name string

	// Readers is nil while the site's platform cannot be asked, since its key cannot be opened.
	Readers *api.Readers

	// Registrations and Feed return an error if the store is away.
	Registrations func() (*registration.Readers, error)
	Feed          func() (*events.Feed, error)

	// IsOff means that the operator wants no registrations, and SendsMail that registrants are told by mail.
	IsOff, SendsMail bool
}

// registrationPath is behind the slug of an event. With calendarSuffix it is the calendar file of
// a reader who is registered.
const registrationPath = "/registration"

func (h *Registration) slug(path string) (string, bool) {
	rest, below := strings.CutPrefix(strings.TrimSuffix(path, "/"), h.Path+"/")
	if h.isCalendar(path) {
		rest = strings.TrimSuffix(rest, calendarSuffix)
	}
	slug, is := strings.CutSuffix(rest, registrationPath)
	return slug, below && is && slug != ""
}

func (*Registration) isCalendar(path string) bool {
	return strings.HasSuffix(path, registrationPath+calendarSuffix)
}

// fail answers a request that was not done.
func (h *Registration) fail(w http.ResponseWriter, r *http.Request, site RegistrationSite, err error) api.Outcome {
	f := api.FailureOf(err)
	if f.IsUnforeseen || f.Outcome == api.Failed && r.Context().Err() == nil {
		h.Logger.Error("cannot answer about a registration", zap.String("site", site.Name), zap.Error(err))
	}
	if f.Status == http.StatusServiceUnavailable {
		f.Wait = cmp.Or(f.Wait, busyRetry)
	}
	f.SetRetryAfter(w.Header())
	writeRegistrationFailure(w, f)
	return f.Outcome
}

// sameOriginOnly keeps pages of other origins from loading a response (Fetch, section 3.7).
func sameOriginOnly(w http.ResponseWriter) {
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
}

func writeRegistrationFailure(w http.ResponseWriter, f api.Failure) {
	api.WriteJSON(w, f.Status, struct {
		Message string `json:"message"`
	}{f.Message})
}

const (
	// registrationTimeout bounds a request, in which the platform and the store are asked.
	registrationTimeout = 20 * time.Second

	// maxSlug is longer than any slug of a platform, in bytes.
	maxSlug = 4 * 191

	// maxRegistrationBody is more than an email of 254 bytes takes (RFC 5321, section 4.5.3.1.3),
	// in bytes.
	maxRegistrationBody = 4 << 10
)

var (
	registrationMethods = []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodOptions}
	calendarMethods     = []string{http.MethodGet, http.MethodHead, http.MethodOptions}
)

func (h *Registration) methods(r *http.Request) []string {
	if page, _ := h.mailPageOf(r.URL.Path); page != "" {
		return mailPageMethods
	}
	if h.isCalendar(r.URL.Path) {
		return calendarMethods
	}
	return registrationMethods
}

// askedRegistration is a request that may be answered.
type askedRegistration struct {
	slug          string
	reader        registration.Reader
	readers       *api.Readers
	registrations *registration.Readers

	// What the body says.
	token       string
	isPressed   bool // by the reader, who registers with any token
	email, name string
	newsletters *bool // nil if it does not say
	waits       bool  // for a place, if all are taken
}

// admit finds who asks about what.
func (h *Registration) admit(ctx context.Context, w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) (asked askedRegistration, err error) {
	if wait := h.Limiter.Take(ctx, ratelimit.AddrKey(address)); wait > 0 {
		return asked, api.RateLimited("requests", wait)
	}
	if methods := h.methods(r); !slices.Contains(methods, r.Method) {
		api.Allow(w.Header(), methods...)
		return asked, api.ErrNotAllowed
	}
	slug, _ := h.slug(r.URL.Path)
	switch {
	case len(slug) > maxSlug || strings.Contains(slug, "/") || !api.IsText(slug):
		return asked, events.ErrNotFound
	case site.IsOff:
		return asked, registration.ErrNoRegistration
	case site.Readers == nil:
		return asked, errNotServed
	}
	asking, cancel := context.WithTimeout(ctx, api.PressTimeout)
	defer cancel()
	if _, err := site.Readers.Admit(asking, r, address, ""); err != nil {
		return asked, err
	}
	asked.slug, asked.readers = strings.Clone(slug), site.Readers
	if err := asked.readBody(w, r); err != nil {
		return asked, err
	}
	member, err := site.Readers.Reader(asking, r, address) // who may have signed out while the body arrived
	if err != nil {
		return asked, err
	}
	asked.reader = readerOf(member)
	asked.reader.Language = languageOf(r)
	asked.registrations, err = site.Registrations()
	return asked, storeAway(err)
}

// readBody reads what a request that changes something may have: the token of a link, an email, or that it is about the waiting list.
func (a *askedRegistration) readBody(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.ContentLength == 0 {
		return nil
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return errNotJSON
	}
	text, err := api.ReadBody(w, r, maxRegistrationBody)
	if errors.Is(err, api.ErrTooLarge) {
		return err
	}
	var body struct {
		Token       string `json:"token"`
		IsPressed   bool   `json:"pressed"`
		Email       string `json:"email"`
		Name        string `json:"name"`
		Newsletters *bool  `json:"newsletters"`
		Waits       bool   `json:"waiting"`
	}
	if err != nil || api.Unmarshal(text, &body) != nil { // who sends half a body is no trouble of ours
		return errNoRegistrationBody
	}
	if r.Method == http.MethodPut {
		a.token, a.isPressed = body.Token, body.IsPressed
	}
	a.newsletters, a.waits = body.Newsletters, body.Waits
	a.email, a.name = strings.TrimSpace(body.Email), strings.TrimSpace(body.Name)
	return nil
}

var errNoRegistrationBody = api.Invalid(`Write a body such as {"email": "jane@example.com"}.`)

// ignore is nil for an error that is foreseen.
func ignore(err, foreseen error) error {
	if errors.Is(err, foreseen) {
		return nil
	}
	return err
}

// storeAway keeps errors that are foreseen: others are the store's.
func storeAway(err error) error {
	if _, isForeseen := errcode.Of(err); err != nil && !isForeseen {
		return errStoreAway.Because(err)
	}
	return err
}

// Errors of registrations.
var (
	errStoreAway = api.Unavailable("Registrations are not available now. Try again in a moment.", busyRetry)
	errNotServed = api.Unavailable("Registrations are not available on this site now.", time.Minute)
)

func readerOf(m platform.Reader) registration.Reader {
	reader := registration.Reader{Member: m.UUID, Email: m.Email, Name: m.Name, Since: m.Since}
	switch {
	case m.UUID == "":
	case m.IsPaid:
		reader.Membership = registration.PaidMember
	default:
		reader.Membership = registration.FreeMember
	}
	return reader
}

// registrationStatus is the status of a response. A reader who only asks has a success; one who wanted to
// change something learns from it whether it is so.
func registrationStatus(method string, isGuest, waits bool, found registration.Registration) (int, api.Outcome) {
	isWaiting := found.Waiting != nil && !found.Waiting.Since.IsZero()
	isDone := method == http.MethodGet || method == http.MethodHead ||
		method == http.MethodPut && (found.State == messaging.Registered || waits && isWaiting) ||
		method == http.MethodDelete && waits && !isGuest && !isWaiting ||
		method == http.MethodDelete && !waits && !isGuest && found.RegisteredAt.IsZero() && found.State != messaging.EventPassed
	switch {
	case isDone:
		return http.StatusOK, api.Done
	case isGuest && (method == http.MethodDelete || found.State == messaging.LoginRequiredFree || found.State == messaging.LoginRequiredPaid):
		return http.StatusUnauthorized, api.Unauthorized
	case found.State == messaging.UpgradeRequired:
		return http.StatusForbidden, api.Forbidden
	}
	return http.StatusConflict, api.Rejected
}

// registrationJSON is the body of a response (docs/registration.md#the-endpoint).
type registrationJSON struct {
	State        messaging.State   `json:"state"`
	Message      string            `json:"message"`
	Reason       messaging.Reason  `json:"reason,omitempty"`
	PlacesLeft   *int              `json:"places_left"`
	Deadline     *string           `json:"deadline"`
	RegisteredAt *string           `json:"registered_at"`
	PlatformURL  string            `json:"platform_url,omitempty"`
	Calendars    *calendars        `json:"calendars,omitempty"`
	Labels       *messaging.Labels `json:"labels,omitempty"` // for those who say a language

	// AskName is whether a guest is asked for their name.
	AskName manifest.NameQuestion `json:"ask_name,omitempty"`

	// Newsletters is whether a guest who signs up gets newsletters unless they say otherwise, nil if there are none.
	Newsletters *bool `json:"newsletters,omitempty"`

	// Waiting is how the reader waits for a place, nil where nobody can.
	Waiting *waitingJSON `json:"waiting,omitempty"`

	// MovedFrom is when and where the event was when the reader registered, nil if it is so still.
	MovedFrom *events.Schedule `json:"moved_from,omitempty"`
}

type calendars struct {
	ICS string `json:"ics"`
}

// isOpen has the states of readers who can register, or could once they have signed in or pay.
var isOpen = map[messaging.State]bool{
	messaging.CanRegister: true, messaging.LoginRequiredFree: true, messaging.LoginRequiredPaid: true, messaging.UpgradeRequired: true,
}

func (h *Registration) shown(r *http.Request, site RegistrationSite, found registration.Registration) registrationJSON {
	shown := registrationJSON{
		State: found.State, Reason: found.Reason, Message: found.Message,
		Deadline: api.TimeOrNull(found.Terms.Deadline), RegisteredAt: api.TimeOrNull(found.RegisteredAt), PlatformURL: found.PlatformURL,
		Labels: labelsIn(r),
	}
	language := languageOf(r)
	ours, isOurs := messaging.Message(language, found.State, found.Reason), found.Reason == messaging.IsFull
	if found.Reason == messaging.IsCancelled && !found.RegisteredAt.IsZero() {
		ours, isOurs = messaging.WereRegistered(language), true
	}
	switch {
	case shown.Message == "":
		shown.Message = ours
		if until := found.Terms.DeadlineText(dateLanguage(r, language)); until != "" && isOpen[found.State] {
			shown.Message += " " + messaging.OpenUntil(language, until)
		}
	case isOurs: // which staff's text for whatever reason need not say
		shown.Message = ours + "\n" + shown.Message
	}
	if r.URL.Query().Has("link") {
		shown.Message = cmp.Or(messaging.OfLink(language, found.State), shown.Message)
	}
	shown.addWaiting(language, site, found)
	if found.State == messaging.LoginRequiredFree || shown.Waiting != nil && shown.Waiting.JoinAs == messaging.LoginRequiredFree {
		shown.AskName = found.Terms.AskName
		if all := site.Readers.Newsletters(r.Context()); len(all.Names) > 0 {
			shown.Newsletters = &all.AreDefault
		}
	}
	if left, isLimited := found.Terms.PlacesLeft(found.Taken); isLimited {
		shown.PlacesLeft = &left
	}
	if found.State == messaging.Registered {
		shown.MovedFrom = found.Terms.MovedFrom(found.RegisteredAt)
	}
	if slug, ok := h.slug(r.URL.Path); ok && found.State == messaging.Registered {
		shown.Calendars = &calendars{ICS: h.Path + "/" + url.PathEscape(slug) + registrationPath + calendarSuffix}
	}
	return shown
}
