// Package audit says who changed what, in a log of its own (docs/audit.md).
//
// Where a request or a command comes in, [With] puts into its context who it comes from and where
// changes are logged. Where a change is made, [Note] logs it once it is durable. What is changed
// without such a context, as by a comparison with the platform, is not logged.
//
// Changes have names, IDs and no values: neither secrets nor what people are called.
package audit

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Who makes changes.
const (
	ViaCommand  = "command"
	ViaAdminAPI = "admin_api"
	ViaStaff    = "staff" // on the desk, or by its API
)

// Actor is who makes changes.
type Actor struct {
	Via string `json:"via"`

	// ID is that of a member of the staff on the platform, or the name of an admin token. It is
	// "" where nobody is told from others.
	ID string `json:"actor,omitempty"`
}

// Change is a change that was made.
type Change struct {
	Actor

	Action string    `json:"action"` // such as added
	Kind   string    `json:"kind"`   // of the thing, such as site
	ID     string    `json:"id"`     // of the thing
	Site   string    `json:"site"`
	At     time.Time `json:"at,omitzero"` // zero for now
}

// Log takes changes. It may be used by many goroutines at once.
type Log func(Change)

// To writes a line for each change to a logger.
func To(logger *zap.Logger) Log {
	return func(c Change) {
		fields := []zap.Field{zap.String("via", c.Via)}
		if c.Actor.ID != "" {
			fields = append(fields, zap.String("actor", c.Actor.ID))
		}
		fields = append(fields, zap.String("action", c.Action), zap.String("kind", c.Kind), zap.String("id", c.ID), zap.String("site", c.Site))
		if !c.At.IsZero() {
			fields = append(fields, zap.Time("at", c.At))
		}
		logger.Info(c.Kind+" "+c.Action, fields...)
	}
}

type key struct{}

// audited is what a context has.
type audited struct {
	log Log
	by  Actor
}

// With has changes that are made in the context logged as made by an actor.
func With(ctx context.Context, log Log, by Actor) context.Context {
	return context.WithValue(ctx, key{}, audited{log, by})
}

// Note logs a change that is durable.
func Note(ctx context.Context, site, kind, id, action string) {
	if a, ok := ctx.Value(key{}).(audited); ok && a.log != nil {
		a.log(Change{Actor: a.by, Action: action, Kind: kind, ID: id, Site: site})
	}
}
