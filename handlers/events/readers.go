package events

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
)

// Readers answers what readers' browsers and calendars ask about the events of a
// site (docs/events_api.md). All fields are required.
type Readers struct {
	// Path is where the list is, such as /ghost/lychgate/events. Behind it are the events.
	Path string

	// Limiter holds the allowance of each reader.
	Limiter ratelimit.Limiter

	Logger *zap.Logger
}

const (
	// eventsPerPage is how many events a page has, unless the reader asks for another number.
	eventsPerPage = 100

	// keepEvents is how long browsers and proxies may keep a response.
	keepEvents = "public, max-age=30"

	calendarType = "text/calendar; charset=utf-8"
)

// Serve answers a request at or below Path from a reader, for a site, which is called as its
// name says. readers are nil for a site that cannot be private. feed returns an error if the store is away.
func (h *Readers) Serve(w http.ResponseWriter, r *http.Request, site string, readers *api.Readers, feed func() (*events.Feed, error), reader netip.Addr) api.Outcome {
	if outcome, ok := api.Reads(w, r); !ok {
		return outcome
	}
	if wait := h.Limiter.Take(r.Context(), ratelimit.AddrKey(reader)); wait > 0 {
		api.WritePublicError(w, api.RateLimited("requests", wait))
		return api.TooMany
	}
	asked, parameter, message := h.parse(r)
	if message != "" {
		api.WritePublicFailure(w, http.StatusUnprocessableEntity, parameter, message)
		return api.Rejected
	}
	isPrivate := false
	if readers != nil {
		token := ""
		if asked.form == events.Calendar {
			token = r.URL.Query().Get("token")
		}
		var err error
		if isPrivate, err = readers.Admit(r.Context(), r, reader, token); err != nil {
			if asked.isPage && errors.Is(err, api.ErrPrivate) {
				h.leadToPassword(w, r)
				return api.Forbidden
			}
			w.Header().Set("Cache-Control", "no-store")
			api.WritePublicError(w, err)
			return api.FailureOf(err).Outcome
		}
	}
	response, err := h.respond(r, site, feed, asked)
	switch {
	case errors.Is(err, events.ErrNotFound):
		api.WritePublicFailure(w, http.StatusNotFound, "", "There is no event at this address.")
		return api.NotFound
	case err != nil:
		message := "The events are not available now. Try again in a moment."
		if errors.Is(err, events.ErrBusy) {
			message = "Too many readers are being served. Try again in a moment."
		} else if r.Context().Err() == nil {
			h.Logger.Error("cannot read events", zap.String("site", site), zap.Error(err))
		}
		api.WritePublicError(w, api.Unavailable(message, busyRetry))
		return api.Failed
	}
	defer response.Close()
	if asked.isPage {
		return leadToPage(w, isPrivate, response)
	}
	writeEvents(w, r, asked, isPrivate, response)
	return api.Done
}

// leadToPage redirects to the page of an event, which has another address once staff change its slug.
func leadToPage(w http.ResponseWriter, isPrivate bool, event io.Reader) api.Outcome {
	var public struct{ URL string }
	err := json.NewDecoder(event).Decode(&public)
	page, broken := url.Parse(public.URL)
	if err != nil || broken != nil || page.Scheme != "http" && page.Scheme != "https" {
		api.WritePublicFailure(w, http.StatusNotFound, "", "There is no event at this address.")
		return api.NotFound
	}
	w.Header().Set("Cache-Control", cacheControl(isPrivate))
	w.Header().Set("Location", page.String())
	w.WriteHeader(http.StatusFound)
	return api.Done
}

// leadToPassword has a reader of a mail give the password of a private publication first, and then leads them on.
func (h *Readers) leadToPassword(w http.ResponseWriter, r *http.Request) {
	root, _, isBelow := strings.Cut(h.Path, "/ghost/")
	if !isBelow {
		root = ""
	}
	w.Header().Set("Cache-Control", cacheControl(true))
	w.Header().Set("Location", root+"/private/?r="+url.QueryEscape(strings.TrimPrefix(r.URL.Path, root)))
	w.WriteHeader(http.StatusFound)
}

func cacheControl(isPrivate bool) string {
	if isPrivate {
		return "private, no-store"
	}
	return keepEvents
}

// asked is what a reader asks for: an event if there is a slug, and otherwise a list.
type askedEvents struct {
	slug   string // or the event's ID
	query  events.PublicQuery
	form   events.Form
	isPage bool // where the event's page is
}

// parse reads a request. If it is not valid, it returns the parameter, and what is wrong.
func (h *Readers) parse(r *http.Request) (asked askedEvents, parameter, message string) {
	rest := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, h.Path), "/")
	asked.form = events.JSON
	if path, ok := strings.CutSuffix(rest, ".ics"); ok {
		rest, asked.form = path, events.Calendar
	} else if path, ok := strings.CutSuffix(rest, ".html"); ok && path != "" && path != "/" {
		rest, asked.isPage = path, true
	}
	// What is kept of a request must not keep the whole of it in memory.
	asked.slug = strings.Clone(strings.TrimPrefix(rest, "/"))
	if asked.slug != "" {
		return asked, "", ""
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return asked, "query", "The query cannot be read: write it as ?type=webinar&limit=10."
	}
	q := events.PublicQuery{Past: query.Has("past"), Type: strings.Clone(query.Get("type")), Most: eventsPerPage}
	if asked.form == events.Calendar {
		q.Most = events.MaxPublic
	}
	if len(q.Type) > maxEventType || !api.IsText(q.Type) {
		return asked, "type", "There is no such event type."
	}
	for _, number := range []struct {
		name string
		into *int
		most int
	}{{"limit", &q.Most, events.MaxPublic}, {"from", &q.From, maxFrom}} {
		if !query.Has(number.name) {
			continue
		}
		n, err := strconv.Atoi(query.Get(number.name))
		if least := min(1, *number.into); err != nil || n < least || n > number.most {
			return asked, number.name, "Write a number from " + strconv.Itoa(least) + " to " + strconv.Itoa(number.most) + ", such as ?" + number.name + "=10."
		}
		*number.into = n
	}
	asked.query = q
	return asked, "", ""
}

const (
	maxEventType = 200     // bytes
	maxFrom      = 1000000 // events
)

func (h *Readers) respond(r *http.Request, site string, feed func() (*events.Feed, error), asked askedEvents) (*events.Response, error) {
	if len(asked.slug) > 4*191 || strings.Contains(asked.slug, "/") || !api.IsText(asked.slug) { // no platform has such slugs
		return nil, events.ErrNotFound
	}
	of, err := feed()
	if err != nil {
		return nil, err
	}
	if asked.slug != "" {
		return of.Event(r.Context(), site, asked.slug, asked.form)
	}
	return of.List(r.Context(), site, site, asked.query, asked.form)
}

// writeEvents writes a response, or that the reader has it.
func writeEvents(w http.ResponseWriter, r *http.Request, asked askedEvents, isPrivate bool, response *events.Response) {
	header := w.Header()
	if header.Add("Vary", "Accept-Encoding"); takesGzip(r.Header) {
		switch tag := response.GzipTag(); {
		case strings.Contains(r.Header.Get("If-None-Match"), api.ETag(tag)):
			response.Tag = tag // and no body
		case response.Gzip():
			header.Set("Content-Encoding", "gzip")
		}
	}
	api.AllowAnyOrigin(header)
	header.Set("Cache-Control", cacheControl(isPrivate))
	header.Set("Etag", api.ETag(response.Tag))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Type", "application/json")
	if asked.form == events.Calendar {
		name := "events"
		if asked.slug != "" {
			name = response.Name
		}
		header.Set("Content-Type", calendarType)
		header.Set("Content-Disposition", disposition(name, calendarSuffix))
	}
	if strings.Contains(r.Header.Get("Range"), ",") { // each of many ranges costs more than it asks for (RFC 9110, section 14.2)
		whole := *r
		whole.Header = r.Header.Clone()
		whole.Header.Del("Range")
		r = &whole
	}
	http.ServeContent(&pacedWriter{w, response.Size(), response.IsUrgent, time.Now()}, r, "", time.Time{}, response)
}

// takesGzip reports whether a response may be compressed (RFC 9110, section 12.5.3). Ranges are of the uncompressed text.
func takesGzip(header http.Header) bool {
	if header.Get("Range") != "" {
		return false
	}
	for coding := range strings.SplitSeq(strings.Join(header["Accept-Encoding"], ","), ",") {
		name, weight, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(coding, " ", "")), ";q=")
		if name != "gzip" {
			continue
		}
		q, err := strconv.ParseFloat(weight, 64)
		return weight == "" || err == nil && q > 0
	}
	return false
}

// busyRetry is when a reader is to ask again while too many others ask the store.
const busyRetry = 5 * time.Second

const (
	// chunkTime is how long a reader may take for the next chunk of a response, of 32 KB, and
	// urgentTime how long for a whole one while others are refused for want of memory.
	chunkTime  = 10 * time.Second
	urgentTime = 5 * time.Second

	// graceTime and leastRate bound how long a reader may take for a whole response: the time,
	// and a second for each so many bytes.
	graceTime = 30 * time.Second
	leastRate = 16 << 10
)

var errSlowReader = errors.New("the reader takes too long")

// pacedWriter writes a response, and fails if its reader takes too long: what it is read from
// is in memory as long.
type pacedWriter struct {
	http.ResponseWriter

	size     int64 // of the response, in bytes
	isUrgent func() bool
	began    time.Time
}

// Write writes a chunk, and bounds how long the reader may take for it.
func (w *pacedWriter) Write(chunk []byte) (int, error) {
	now := time.Now()
	end := w.began.Add(graceTime + time.Duration(w.size)*time.Second/leastRate)
	if now.After(end) || now.Sub(w.began) > urgentTime && w.isUrgent() {
		return 0, errSlowReader
	}
	if chunkEnd := now.Add(chunkTime); chunkEnd.Before(end) {
		end = chunkEnd
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(end) // a writer without deadlines has those of Caddy
	return w.ResponseWriter.Write(chunk)
}

// Unwrap is for [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
