package edge

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
)

// This file has the metrics that are read when they are asked for. A store that is away must
// not take the other metrics with it, so those of it are left out then.

// collector is such metrics.
type collector struct {
	descriptions []*prometheus.Desc
	collect      func(chan<- prometheus.Metric)
}

func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range c.descriptions {
		descriptions <- d
	}
}

func (c *collector) Collect(metrics chan<- prometheus.Metric) { c.collect(metrics) }

var (
	redisUpDesc = prometheus.NewDesc("lychgate_redis_up", "1 while Redis answers, 0 while this edge goes on by itself.", nil, nil)

	membersRefusedDesc = prometheus.NewDesc("lychgate_members_refused",
		"Members whose last write the publishing platform refused for good after it was queued. "+
			"Those of all sites in the store are counted together.", []string{"site"}, nil)

	membersPendingDesc = prometheus.NewDesc("lychgate_members_behind",
		"Members whose last write the publishing platform does not have yet. "+
			"Those of all sites in the store are counted together. lychgate_pending has it too, and takes its place in the next release.", []string{"site"}, nil)

	pendingDesc = prometheus.NewDesc("lychgate_pending",
		"What was written here and the publishing platform does not have yet, by kind (members, events, curation, registrations). "+
			"That of all sites in the store is counted together.", []string{"site", "kind"}, nil)

	storedSitesDesc = prometheus.NewDesc("lychgate_stored_sites",
		"Sites in the store that this edge serves, by state: served, or locked if their keys cannot be opened.", []string{"state"}, nil)

	firstPollsDesc = prometheus.NewDesc("lychgate_first_polls_waiting",
		"Sites whose publishing platform was not polled yet since this edge began to serve them, for changes of which no webhook told.", nil, nil)

	sitesFailingDesc = prometheus.NewDesc("lychgate_sites_failing",
		"Sites whose platform rejects the key, or is away, by state (key_rejected, platform_away), of all edges.", []string{"state"}, nil)

	redisUp          = &collector{[]*prometheus.Desc{redisUpDesc}, collectRedisUp}
	membersPending   = &collector{[]*prometheus.Desc{membersRefusedDesc, firstPollsDesc}, ofRunning(collectMembers)}
	pendingCount     = &collector{[]*prometheus.Desc{pendingDesc, membersPendingDesc}, ofRunning(collectPending)}
	storedSitesCount = &collector{[]*prometheus.Desc{storedSitesDesc}, ofRunning(collectStoredSites)}
	failingSites     = newFailingSites()
)

func registerMetrics(registry *prometheus.Registry) error {
	all := []prometheus.Collector{dnsQuerySeconds, cacheEntries, allowanceKeys, redisUp, membersPending, pendingCount, storedSitesCount, failingSites, certificatesTotal, certificateStates}
	for _, c := range siteCounters {
		all = append(all, c)
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// ofRunning has metrics of the edge that runs collected, within a second, and none while none
// does.
func ofRunning(collect func(context.Context, *Uses, chan<- prometheus.Metric)) func(chan<- prometheus.Metric) {
	return func(metrics chan<- prometheus.Metric) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if now := runningNow.Load(); now != nil {
			collect(ctx, now.uses, metrics)
		}
	}
}

func gauge(description *prometheus.Desc, n int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(n), labels...)
}

// collectRedisUp sends no value without a Redis. While two configurations run, each with its
// own, it is that of one of them.
func collectRedisUp(metrics chan<- prometheus.Metric) {
	all := clients.All()
	if len(all) == 0 {
		return
	}
	up := 0
	if all[0].Up() {
		up = 1
	}
	metrics <- gauge(redisUpDesc, up)
}

func collectMembers(ctx context.Context, u *Uses, metrics chan<- prometheus.Metric) {
	serving := u.members.Serving()
	if serving == nil {
		return
	}
	metrics <- gauge(firstPollsDesc, serving.inbound.Unpolled())
	if refused, err := serving.Store.CountAllRefused(ctx); err == nil {
		sendBySite(metrics, u.sites.served, membersRefusedDesc, refused)
	}
}

func collectPending(ctx context.Context, u *Uses, metrics chan<- prometheus.Metric) {
	queue, err := u.PendingNow()
	if err != nil {
		return
	}
	all, err := queue.CountAll(ctx)
	if err != nil {
		return
	}
	for _, kind := range queue.Kinds() {
		ofKind := make(map[string]int)
		for site, of := range all {
			ofKind[site] = of[kind]
		}
		sendBySite(metrics, u.sites.served, pendingDesc, ofKind, kind)
		if kind == outbox.Kind {
			sendBySite(metrics, u.sites.served, membersPendingDesc, ofKind)
		}
	}
}

// sendBySite sends a metric of each site of the configuration, and of all in the store
// together.
func sendBySite(metrics chan<- prometheus.Metric, served *servedSites, of *prometheus.Desc, all map[string]int, labels ...string) {
	for name := range served.byName {
		metrics <- gauge(of, all[name], append([]string{name}, labels...)...)
	}
	stored := 0
	for name, n := range all {
		if served.storedSite(name) != nil {
			stored += n
		}
	}
	metrics <- gauge(of, stored, append([]string{StoredLabel}, labels...)...)
}

func collectStoredSites(_ context.Context, u *Uses, metrics chan<- prometheus.Metric) {
	locked, all := 0, *u.sites.served.inStore.Load()
	for _, site := range all {
		if site.Locked != nil {
			locked++
		}
	}
	metrics <- gauge(storedSitesDesc, len(all)-locked, "served")
	metrics <- gauge(storedSitesDesc, locked, "locked")
}
