package outbox

import (
	"time"

	"github.com/lychgate/caddy-lychgate/work"
)

const (
	// BatchSize is how many records of a site are retried at a time.
	BatchSize = batchSize

	// MaxSilent is how many attempts may have no response before the breaker opens.
	MaxSilent = work.MaxUnanswered

	// MaxAttempts bounds the attempts that are under way.
	MaxAttempts = maxRetries + maxSlowRetries + maxCalls + maxSlowCalls
)

// SetInterval says how often Run looks for what is due by itself.
func (o *Outbox) SetInterval(interval time.Duration) { o.interval = interval }

// States counts the sites that the outbox keeps a state of.
func (o *Outbox) States() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.states)
}
