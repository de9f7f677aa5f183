package admin

import "context"

// HoldChanges keeps the turn of requests that write sites, until release. waiting counts those of a token that wait for it.
func HoldChanges(ctx context.Context) (waiting func(token string) int, release func(), err error) {
	return changes.turns.TakenBy, func() { changes.tenants.Release("") }, changes.tenants.Acquire(ctx, "")
}
