package handlers

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
)

// ReadersEvents answers what readers' browsers and calendars ask about the events of a
// site (docs/events.md). All fields are required.
type ReadersEvents struct {
	// Path is where the list is, such as /ghost/lychgate/events. Behind it are the events.
	Path string

	// Limiter holds the allowance of each reader.
	Limiter ratelimit.Limiter

	Logger *zap.Logger
}

const (
	// eventsPerPage is how many events a page has, unless the reader asks for another number.
	eventsPerPage = 100

	// keepEvents is how long browsers and proxies may keep an answer.
	keepEvents = "public, max-age=30"

	calendarType = "text/calendar; charset=utf-8"
)

// Serve answers a request at or below Path from a reader, for a site, which is called as its
// name says. feed returns an error if the store is away.
func (h *ReadersEvents) Serve(w http.ResponseWriter, r *http.Request, site string, feed func() (*events.Feed, error), reader netip.Addr) Outcome {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		preflight(w)
		return Done
	default:
		methodNotAllowed(w)
		return Other
	}
	if wait := h.Limiter.Take(r.Context(), ratelimit.AddrKey(reader)); wait > 0 {
		writeTooMany(w, wait)
		return TooMany
	}
	asked, parameter, message := h.parse(r)
	if message != "" {
		writeValidationError(w, parameter, message)
		return Rejected
	}
	answer, err := h.answer(r, site, feed, asked)
	switch {
	case errors.Is(err, events.ErrBusy):
		w.Header().Set("Retry-After", "5")
		writeMessage(w, http.StatusServiceUnavailable, "Too many readers are being served. Try again in a moment.")
		return Failed
	case errors.Is(err, events.ErrNotFound):
		writeMessage(w, http.StatusNotFound, "There is no event at this address.")
		return NotFound
	case err != nil:
		if r.Context().Err() == nil {
			h.Logger.Error("the events cannot be read", zap.String("site", site), zap.Error(err))
		}
		w.Header().Set("Retry-After", "5")
		writeMessage(w, http.StatusServiceUnavailable, "The events are not available now. Try again in a moment.")
		return Failed
	}
	defer answer.Close()
	writeEvents(w, r, asked, answer)
	return Done
}

// asked is what a reader asks for: an event if there is a slug, and otherwise a list.
type askedEvents struct {
	slug  string
	query events.PublicQuery
	form  events.Form
}

// parse reads a request. If it is not valid, it returns the parameter, and what is wrong.
func (h *ReadersEvents) parse(r *http.Request) (asked askedEvents, parameter, message string) {
	rest := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, h.Path), "/")
	asked.form = events.JSON
	if path, ok := strings.CutSuffix(rest, ".ics"); ok {
		rest, asked.form = path, events.Calendar
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
	if len(q.Type) > maxEventType || !isKept(q.Type) {
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

// isKept reports whether a store may have a text: PostgreSQL fails at others.
func isKept(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

func (h *ReadersEvents) answer(r *http.Request, site string, feed func() (*events.Feed, error), asked askedEvents) (*events.Response, error) {
	if len(asked.slug) > 4*191 || strings.Contains(asked.slug, "/") || !isKept(asked.slug) { // no platform has such slugs
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

// writeEvents writes an answer, or that the reader has it.
func writeEvents(w http.ResponseWriter, r *http.Request, asked askedEvents, answer *events.Response) {
	header := w.Header()
	header.Del("Access-Control-Allow-Credentials")
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Cache-Control", keepEvents)
	header.Set("Etag", `"`+answer.Tag+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Type", "application/json")
	if asked.form == events.Calendar {
		name := "events.ics"
		if asked.slug != "" {
			name = "event.ics"
		}
		header.Set("Content-Type", calendarType)
		header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	}
	if strings.Contains(r.Header.Get("Range"), ",") { // each of many ranges costs more than it asks for (RFC 9110, section 14.2)
		whole := *r
		whole.Header = r.Header.Clone()
		whole.Header.Del("Range")
		r = &whole
	}
	http.ServeContent(&pacedWriter{w, answer.Size(), answer.IsUrgent, time.Now()}, r, "", time.Time{}, answer)
}

const (
	// chunkTime is how long a reader may take for the next chunk of an answer, of 32 KB, and
	// urgentTime how long for a whole one while others are refused for want of memory.
	chunkTime  = 10 * time.Second
	urgentTime = 5 * time.Second

	// graceTime and leastRate bound how long a reader may take for a whole answer: the time,
	// and a second for each so many bytes.
	graceTime = 30 * time.Second
	leastRate = 16 << 10
)

var errSlowReader = errors.New("the reader takes too long")

// pacedWriter writes an answer, and fails if its reader takes too long: what it is read from
// is in memory as long.
type pacedWriter struct {
	http.ResponseWriter

	size     int64 // of the answer, in bytes
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
