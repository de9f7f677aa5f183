package members

import (
	"context"
	"time"
)

// Outbox applies writes to the publishing platform.
type Outbox interface {
	// Deliver applies a write that is in the store to the platform, and ends its
	// lease. Without a lease the write is left to a retry. Errors:
	// ErrNotFound, if the platform's staff deleted the member; *InvalidError and
	// *TakenError, if the platform refused the write, and it was undone.
	Deliver(ctx context.Context, w Write) (Delivered, error)
}

// Write is a write that is in the store.
type Write struct {
	After  Record
	Before *Record // nil for a new member
	Lease  Lease   // none for one that is left to a retry
}

// Delivered is a record after a write.
type Delivered struct {
	Record

	// Queued reports that the write is durable here, but not on the platform yet.
	Queued bool
}

// Inbound fetches members of the publishing platform.
type Inbound interface {
	// ReadThrough asks the platform for the member that has an email, and keeps it in the
	// store. Errors: ErrNotFound, also for a member that the store has by now; *InvalidError
	// if the platform does not respond.
	ReadThrough(ctx context.Context, site, email string) (Record, error)
}

// Config is what a [Service] is made from.
type Config struct {
	Site  string
	Store Store

	// Outbox and Inbound connect the site to its platform. They are nil for a
	// site whose members live in the store alone.
	Outbox  Outbox
	Inbound Inbound

	// Declared are the integrations of the configuration, and Integrations has those
	// in the store. Both tell which addresses are placeholders, and may be left out.
	Declared     []Integration
	Integrations Integrations

	// Requests remembers answered requests. It may be nil for callers that use
	// neither Begin nor End.
	Requests Requests

	// Timeout bounds how long a write waits for a record that another process
	// writes. Default: 5 seconds.
	Timeout time.Duration

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// DefaultTimeout bounds how long a caller of the API waits for the platform.
const DefaultTimeout = 5 * time.Second

// callerLease is how long a process has a record that it writes for a caller, unless it prolongs that: how long a killed process
// delays the write, at most. A caller that waits longer for its turn may find that the write was made meanwhile.
const callerLease = 4 * time.Second

// Service does the operations of the members API for one site. It may be used by
// many goroutines at once.
type Service struct {
	Config
	leases  Leases
	domains storedDomains
}

// New makes a Service.
func New(cfg Config) *Service {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{Config: cfg, leases: Leases{Store: cfg.Store, Now: cfg.Now, Timeout: cfg.Timeout, Time: callerLease}}
}
