package outbox

import "time"

// BatchSize is how many records of a site are retried at a time.
const BatchSize = batchSize

// SetInterval says how often Run looks for what is due by itself.
func (o *Outbox) SetInterval(interval time.Duration) { o.interval = interval }
