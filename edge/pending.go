package edge

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/pending"
)

// This file shows all kinds of what is pending, for the desk, the admin API and the metrics.

// Pending returns what is pending in the store, which is opened if it is not. Errors:
// ErrStoreAway, and that of opening.
func (e *Edge) Pending() (pending.View, error) {
	if e.store == nil {
		return pending.View{}, ErrStoreAway
	}
	if err := e.store.open(); err != nil {
		return pending.View{}, err
	}
	return e.PendingNow()
}

// PendingNow is Pending for callers that do not wait until the store is opened.
func (e *Edge) PendingNow() (pending.View, error) {
	if e.store == nil || e.store.work.Load() == nil {
		return pending.View{}, ErrStoreAway
	}
	v := pending.View{Work: e.store.work.Load()}
	if serving := e.members.Serving(); serving != nil {
		v.Outbox = serving.Outbox
	} else if e.members != nil {
		return v, ErrStoreAway
	}
	return v, nil
}

// pendingCount is the metric of how much is pending. It asks the store whenever metrics are
// read.
type pendingCount struct{}

var pendingDesc = prometheus.NewDesc("lychgate_pending",
	"What was written here and the publishing platform does not have yet, by kind (members, events, curation). That of all sites in the store is counted together.", []string{"site", "kind"}, nil)

func (pendingCount) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- pendingDesc }

func (pendingCount) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	e := running.Load()
	if e == nil {
		return
	}
	v, err := e.PendingNow()
	if err != nil {
		return
	}
	all, err := v.CountAll(ctx)
	if err != nil {
		return // a store that is away must not take the other metrics with it
	}
	for _, kind := range v.Kinds() {
		send := func(site string, n int) {
			metrics <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(n), site, kind)
		}
		stored := 0
		for name, of := range all {
			if e.byName[name] == nil && e.stored.site(name) != nil {
				stored += of[kind]
			}
		}
		for name := range e.byName {
			send(name, all[name][kind])
		}
		send(StoredLabel, stored)
	}
}

// Interface guard
var _ prometheus.Collector = pendingCount{}
