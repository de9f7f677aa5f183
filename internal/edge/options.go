package edge

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// Options are what an edge is made from.
type Options struct {
	Config       *config.Config
	Placeholders config.Placeholders
	Lines        config.Lines         // where a Caddyfile has what the configuration says
	StoreFile    string               // of the store, if the configuration names none
	Logger       *zap.Logger          //
	Registry     *prometheus.Registry // for metrics

	// Certificate has from when to when the certificate is valid that the web server has in memory
	// for a host. It may be nil.
	Certificate func(host string) (notBefore, notAfter time.Time, ok bool)
}
