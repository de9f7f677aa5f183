package edge

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// This file has the metrics that are read when they are asked for.

// membersPending are the metrics of how many members are pending and how many were refused.
type membersPending struct{}

var membersRefusedDesc = prometheus.NewDesc("lychgate_members_refused",
	"Members whose last write the publishing platform refused for good after it was queued. Those of all sites in the store are counted together.", []string{"site"}, nil)

var membersPendingDesc = prometheus.NewDesc("lychgate_members_behind",
	"Members whose last write the publishing platform does not have yet. Those of all sites in the store are counted together.", []string{"site"}, nil)

func (membersPending) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- membersPendingDesc
	descriptions <- membersRefusedDesc
}

// Collect implements prometheus.Collector. A store that is away must not take the other
// metrics with it, so these are left out then.
func (membersPending) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	serving := NowServing()
	if serving.Outbox == nil {
		return
	}
	pending, err := serving.Outbox.CountAll(ctx)
	if err != nil {
		return
	}
	serving.count(metrics, membersPendingDesc, pending)
	if refused, err := serving.Outbox.CountAllRefused(ctx); err == nil {
		serving.count(metrics, membersRefusedDesc, refused)
	}
}

// count sends a metric of each site of the configuration, and of all in the store.
func (s *Serving) count(metrics chan<- prometheus.Metric, description *prometheus.Desc, all map[string]int) {
	send := func(site string, n int) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(n), site)
	}
	for _, name := range s.Sites {
		send(name, all[name])
	}
	stored := 0
	for name, n := range all {
		if s.IsStored(name) {
			stored += n
		}
	}
	send(StoredLabel, stored)
}

// storedSitesCount is the metric of how many sites in the store this edge has.
type storedSitesCount struct{}

var storedSitesDesc = prometheus.NewDesc("lychgate_stored_sites",
	"Sites in the store that this edge serves, by state: served, or locked if their keys cannot be opened.", []string{"state"}, nil)

func (storedSitesCount) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- storedSitesDesc
}

func (storedSitesCount) Collect(metrics chan<- prometheus.Metric) {
	e := running.Load()
	if e == nil {
		return
	}
	locked, all := 0, *e.stored.byName.Load()
	for _, site := range all {
		if site.Locked != nil {
			locked++
		}
	}
	for state, n := range map[string]int{"served": len(all) - locked, "locked": locked} {
		metrics <- prometheus.MustNewConstMetric(storedSitesDesc, prometheus.GaugeValue, float64(n), state)
	}
}

// Interface guards
var (
	_ prometheus.Collector = membersPending{}
	_ prometheus.Collector = storedSitesCount{}
)
