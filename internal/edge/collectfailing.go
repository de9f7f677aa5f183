package edge

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// maxNamed bounds the sites that a metric names, so that metrics do not grow with the number of
// sites: an alert names those that are in trouble for longest.
const maxNamed = 10

// namedDescs have the metric of each state whose sites are named.
var namedDescs = map[trouble.State]*prometheus.Desc{
	trouble.WritesPending: prometheus.NewDesc("lychgate_site_pending_age_seconds",
		"How long the oldest write that a platform does not have is pending, if more than 5 minutes: of the 10 sites with the oldest.", []string{"site"}, nil),
	trouble.KeyRejected: prometheus.NewDesc("lychgate_site_key_rejected_age_seconds",
		"How long a platform rejects a site's key: of the 10 sites for which it is longest.", []string{"site"}, nil),
	trouble.PlatformAway: prometheus.NewDesc("lychgate_site_platform_away_age_seconds",
		"How long a platform does not respond: of the 10 sites for which it is longest.", []string{"site"}, nil),
}

func newFailingSites() *collector {
	c := &collector{[]*prometheus.Desc{sitesFailingDesc}, ofRunning(collectFailing)}
	for _, description := range namedDescs {
		c.descriptions = append(c.descriptions, description)
	}
	return c
}

func collectFailing(ctx context.Context, u *Uses, metrics chan<- prometheus.Metric) {
	store := u.trouble.Load()
	if store == nil {
		return
	}
	counts, err := store.Count(ctx)
	if err != nil {
		return
	}
	for of, n := range counts {
		metrics <- gauge(sitesFailingDesc, n, string(of))
	}
	for of, description := range namedDescs {
		longest, err := store.Longest(ctx, of, maxNamed, u.sites.served.Serves)
		if err != nil {
			return
		}
		for _, entry := range longest {
			metrics <- gauge(description, int(store.Age(entry).Seconds()), entry.Site)
		}
	}
}
