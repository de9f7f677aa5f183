package caddymodule

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers"
)

// The metrics belong to the process, so that a reload does not set them back.
// Each configuration registers them with its own registry.
var (
	lookupsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "lychgate",
		Name:      "inbox_provider_lookups_total",
		Help:      "Lookups answered, by outcome (placed, unplaced, failed) and by where the answer came from (list, cache, dns).",
	}, []string{"site", "outcome", "source"})

	rejectedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "lychgate",
		Name:      "inbox_provider_rejected_total",
		Help:      "Lookups rejected because the domain was missing or not shaped like one.",
	}, []string{"site"})

	refusedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "lychgate",
		Name:      "allowance_refused_total",
		Help:      "Requests refused because the reader's allowance was used up, by endpoint (inbox_provider, members).",
	}, []string{"site", "endpoint"})

	membersRequestsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "lychgate",
		Name:      "members_requests_total",
		Help: "Requests of the members API, by operation (get, create, update, delete, webhook, other) and " +
			"outcome (done, queued, replayed, rejected, not_found, unauthorized, too_many, failed, other).",
	}, []string{"site", "operation", "outcome"})

	themesRequestsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "lychgate",
		Name:      "themes_requests_total",
		Help: "Uploads and removals of themes that were watched, and requests about themes, by operation (upload, remove, refresh, list, " +
			"manifest, event_types, curation, validate, other) and outcome (valid, findings, removed, done, not_found, forbidden, " +
			"unreachable, token_rejected, request_failed, failed, other).",
	}, []string{"site", "operation", "outcome"})

	deskRequestsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "lychgate",
		Name:      "desk_requests_total",
		Help: "Requests for the desk, by page (themes, curation, events, event-settings, integrations, sync, admin for what Ghost Admin shows), operation in JSON (show, pick, " +
			"fill, clear, list_events, create_event, show_event, save_event, delete_event, publish_event, unpublish_event, cancel_event, " +
			"duplicate_event, attend_event, labels) or other, and outcome (done, queued, rejected, not_found, forbidden, too_many, failed, other).",
	}, []string{"site", "operation", "outcome"})

	eventsRequestsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "lychgate",
		Name:      "events_requests_total",
		Help:      "Requests of readers and calendars about events, by outcome (done, rejected, not_found, too_many, failed, other).",
	}, []string{"site", "outcome"})

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
	}, func() float64 { return sum(caches) })

	allowanceKeys = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "lychgate",
		Name:      "allowance_keys",
		Help:      "Readers whose requests are being counted.",
	}, func() float64 { return sum(limiters) })
)

func registerMetrics(registry *prometheus.Registry) error {
	for _, c := range []prometheus.Collector{
		lookupsTotal, rejectedTotal, refusedTotal, membersRequestsTotal, themesRequestsTotal, deskRequestsTotal, eventsRequestsTotal, dnsQuerySeconds, cacheEntries, allowanceKeys, redisUp{}, membersBehind{}, pendingCount{}, storedSitesCount{},
	} {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// sum adds up the sizes of what is in a pool.
func sum(pool *caddy.UsagePool) float64 {
	var total int
	pool.Range(func(_, value any) bool {
		total += value.(interface{ Len() int }).Len()
		return true
	})
	return float64(total)
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

// siteMetrics are the counters of one site, looked up once.
type siteMetrics struct {
	name          string
	placed        [3]prometheus.Counter // by classifier.Source
	unplaced      [3]prometheus.Counter
	failed        [3]prometheus.Counter
	rejected      prometheus.Counter
	refusedLookup prometheus.Counter
	refusedMember prometheus.Counter
}

// metricsOfSites holds the siteMetrics by name. A site's series go when no
// configuration has the site any longer.
var metricsOfSites = caddy.NewUsagePool()

func loadSiteMetrics(name string, r *releases) *siteMetrics {
	m, _ := load(metricsOfSites, name, r, func() (*siteMetrics, error) { return newSiteMetrics(name), nil })
	return m
}

func newSiteMetrics(name string) *siteMetrics {
	m := &siteMetrics{
		name:          name,
		rejected:      rejectedTotal.WithLabelValues(name),
		refusedLookup: refusedTotal.WithLabelValues(name, "inbox_provider"),
		refusedMember: refusedTotal.WithLabelValues(name, "members"),
	}
	for source := range classifier.Source(3) {
		m.placed[source] = lookupsTotal.WithLabelValues(name, "placed", source.String())
		if source == classifier.FromList {
			continue // whose answers are never null
		}
		m.unplaced[source] = lookupsTotal.WithLabelValues(name, "unplaced", source.String())
		m.failed[source] = lookupsTotal.WithLabelValues(name, "failed", source.String())
	}
	return m
}

// answered counts an answer.
func (m *siteMetrics) answered(answer classifier.Answer) {
	switch {
	case answer.Failed:
		m.failed[answer.Source].Inc()
	case answer.Provider == classifier.None:
		m.unplaced[answer.Source].Inc()
	default:
		m.placed[answer.Source].Inc()
	}
}

// served counts a request of the members API.
func (m *siteMetrics) served(s handlers.Served) {
	membersRequestsTotal.WithLabelValues(m.name, s.Operation, string(s.Outcome)).Inc()
}

// servedThemes counts a request about themes.
func (m *siteMetrics) servedThemes(s handlers.Served) {
	themesRequestsTotal.WithLabelValues(m.name, s.Operation, string(s.Outcome)).Inc()
}

// servedDesk counts a request for a page of the desk.
func (m *siteMetrics) servedDesk(s handlers.Served) {
	deskRequestsTotal.WithLabelValues(m.name, s.Operation, string(s.Outcome)).Inc()
}

// servedEvents counts a request about events.
func (m *siteMetrics) servedEvents(outcome handlers.Outcome) {
	eventsRequestsTotal.WithLabelValues(m.name, string(outcome)).Inc()
}

// Destruct implements caddy.Destructor.
func (m *siteMetrics) Destruct() error {
	site := prometheus.Labels{"site": m.name}
	lookupsTotal.DeletePartialMatch(site)
	rejectedTotal.DeletePartialMatch(site)
	refusedTotal.DeletePartialMatch(site)
	membersRequestsTotal.DeletePartialMatch(site)
	themesRequestsTotal.DeletePartialMatch(site)
	deskRequestsTotal.DeletePartialMatch(site)
	eventsRequestsTotal.DeletePartialMatch(site)
	return nil
}
