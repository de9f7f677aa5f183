package edge

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
)

// The metrics belong to the process, so that a reload does not set them back.
// Each configuration registers them with its own registry.
var (
	lookupsTotal = counter("inbox_provider_lookups_total",
		"Lookups answered, by outcome (placed, unplaced, failed) and by where the response came from (list, cache, dns).",
		"site", "outcome", "source")

	rejectedTotal = counter("inbox_provider_rejected_total",
		"Lookups rejected because the domain was missing or not shaped like one.",
		"site")

	refusedTotal = counter("allowance_refused_total",
		"Requests refused because the reader's allowance was used up, by endpoint (inbox_provider, members).",
		"site", "endpoint")

	membersRequestsTotal = counter("members_requests_total",
		"Requests of the members API, by operation (get, create, update, delete, webhook, other) and "+
			"outcome (done, queued, replayed, rejected, not_found, unauthorized, too_many, failed, other).",
		"site", "operation", "outcome")

	themesRequestsTotal = counter("themes_requests_total",
		"Uploads and removals of themes that were watched, and requests about themes, by operation (upload, remove, refresh, list, "+
			"manifest, event_types, curation, validate, other) and outcome (valid, findings, removed, done, not_found, forbidden, "+
			"unreachable, token_rejected, request_failed, failed, other).",
		"site", "operation", "outcome")

	deskRequestsTotal = counter("desk_requests_total",
		"Requests for the desk, by page (themes, curation, events, event-settings, guest-list, guest-message, check-in, integrations, sync, admin for what Ghost "+
			"Admin shows), operation in JSON (show, pick, fill, clear, show_slot_history, list_events, create_event, show_event, save_event, delete_event, publish_event, "+
			"unpublish_event, cancel_event, put_event_card, "+
			"duplicate_event, copy_event, publish_series, write_event, show_history, attend_event, list_registrations, add_registration, remove_registration, "+
			"erase_name, export_registrations, list_waiting, move_up, remove_waiting, list_messages, send_message, try_message, check_in, undo_check_in, "+
			"labels) or other, and outcome (done, queued, rejected, not_found, forbidden, too_many, failed, other).",
		"site", "operation", "outcome")

	eventsRequestsTotal = counter("events_requests_total",
		"Requests of readers and calendars about events, by outcome (done, rejected, not_found, too_many, failed, other).",
		"site", "outcome")

	mailsTotal = counter("mails_total",
		"Mails to registrants, by kind (confirmation, reminder, moved, cancelled, place, invitation, message) and outcome (sent, refused by the mail server, failed and tried again).",
		"site", "kind", "outcome")

	dnsQuerySeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "lychgate",
		Name:      "dns_query_duration_seconds",
		Help:      "Time that DNS queries took, by result (answered, refused, timeout, error).",
		Buckets:   []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2},
	}, []string{"result"})

	cacheEntries = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "lychgate",
		Name:      "inbox_provider_cache_entries",
		Help:      "Answers in the cache.",
	}, func() float64 {
		n := 0
		for _, cache := range caches.All() {
			n += cache.Len()
		}
		return float64(n)
	})

	allowanceKeys = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "lychgate",
		Name:      "allowance_keys",
		Help:      "Readers whose requests are being counted.",
	}, func() float64 {
		n := 0
		for _, limiter := range limiters.All() {
			n += limiter.Len()
		}
		for _, memories := range keys.All() {
			n += memories.Len()
		}
		return float64(n)
	})
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "lychgate", Name: name, Help: help}, labels)
}

// siteCounters are those with a label for the site.
var siteCounters = []*prometheus.CounterVec{
	lookupsTotal, rejectedTotal, refusedTotal, membersRequestsTotal, themesRequestsTotal, deskRequestsTotal, eventsRequestsTotal, mailsTotal,
}

func observeDNSQuery(took time.Duration, err error) {
	result := "error"
	switch {
	case err == nil:
		result = "answered"
	case errors.Is(err, classifier.ErrRefused):
		result = "refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		result = "timeout"
	}
	dnsQuerySeconds.WithLabelValues(result).Observe(took.Seconds())
}

// SiteMetrics are the counters of one site, looked up once.
type SiteMetrics struct {
	name          string
	placed        [3]prometheus.Counter // by classifier.Source
	unplaced      [3]prometheus.Counter
	failed        [3]prometheus.Counter
	Rejected      prometheus.Counter
	RefusedLookup prometheus.Counter
	RefusedMember prometheus.Counter
}

// metricsOfSites holds the SiteMetrics by name. A site's series go when no
// configuration has the site any longer.
var metricsOfSites pool.Pool[string, *SiteMetrics]

func loadSiteMetrics(name string, r *pool.Releases) *SiteMetrics {
	m, _ := metricsOfSites.Load(name, r, func() (*SiteMetrics, error) { return newSiteMetrics(name), nil })
	return m
}

func newSiteMetrics(name string) *SiteMetrics {
	m := &SiteMetrics{
		name:          name,
		Rejected:      rejectedTotal.WithLabelValues(name),
		RefusedLookup: refusedTotal.WithLabelValues(name, "inbox_provider"),
		RefusedMember: refusedTotal.WithLabelValues(name, "members"),
	}
	for source := range classifier.Source(3) {
		m.placed[source] = lookupsTotal.WithLabelValues(name, "placed", source.String())
		if source == classifier.FromList {
			continue // whose responses are never null
		}
		m.unplaced[source] = lookupsTotal.WithLabelValues(name, "unplaced", source.String())
		m.failed[source] = lookupsTotal.WithLabelValues(name, "failed", source.String())
	}
	return m
}

// Answered counts a response.
func (m *SiteMetrics) Answered(answer classifier.Answer) {
	switch {
	case answer.Failed:
		m.failed[answer.Source].Inc()
	case answer.Provider == classifier.None:
		m.unplaced[answer.Source].Inc()
	default:
		m.placed[answer.Source].Inc()
	}
}

// Served counts a request of the members API.
func (m *SiteMetrics) Served(s api.Served) {
	membersRequestsTotal.WithLabelValues(m.name, s.Operation, string(s.Outcome)).Inc()
}

// ServedThemes counts a request about themes.
func (m *SiteMetrics) ServedThemes(s api.Served) {
	themesRequestsTotal.WithLabelValues(m.name, s.Operation, string(s.Outcome)).Inc()
}

// ServedDesk counts a request for a page of the desk.
func (m *SiteMetrics) ServedDesk(s api.Served) {
	deskRequestsTotal.WithLabelValues(m.name, s.Operation, string(s.Outcome)).Inc()
}

// ServedEvents counts a request about events.
func (m *SiteMetrics) ServedEvents(outcome api.Outcome) {
	eventsRequestsTotal.WithLabelValues(m.name, string(outcome)).Inc()
}

// Close removes the series.
func (m *SiteMetrics) Close() error {
	for _, c := range siteCounters {
		c.DeletePartialMatch(prometheus.Labels{"site": m.name})
	}
	return nil
}
