package edge

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/config"
)

// Options are what an edge is made from.
type Options struct {
	Config       *config.Config
	Placeholders config.Placeholders
	Lines        config.Lines         // where a Caddyfile has what the configuration says
	StoreFile    string               // of the store, if the configuration names none
	Logger       *zap.Logger          //
	Registry     *prometheus.Registry // for metrics
}
