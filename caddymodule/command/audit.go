package command

import (
	"context"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// keepTimeout and keepTimeOfEach bound how long a command waits for the store to keep what it has changed.
const (
	keepTimeout    = 10 * time.Second
	keepTimeOfEach = time.Millisecond
)

// audited runs the work of a command, and keeps what it changes for the audit log of an edge, also
// if it fails or is interrupted in the middle.
func audited(ctx context.Context, db *database.DB, do func(ctx context.Context) error) (err error) {
	var changes []audit.Change
	log := func(c audit.Change) {
		c.At = time.Now().UTC().Truncate(time.Millisecond)
		changes = append(changes, c)
	}
	err = do(audit.With(ctx, log, audit.Actor{Via: audit.ViaCommand}))
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout+time.Duration(len(changes))*keepTimeOfEach)
	defer cancel()
	if failed := audit.Keep(keeping, db, changes); failed != nil && err == nil {
		return fmt.Errorf("it is done, but the audit log lacks it: %w", failed)
	}
	return err
}
