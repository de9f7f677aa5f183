package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/lychgate/caddy-lychgate/caddymodule/app"
	"github.com/lychgate/caddy-lychgate/pending"
)

// behindSite is what is behind at a site.
type behindSite struct {
	Behind int `json:"behind"`

	// Members are those whose next attempt comes first, 100 at most.
	Members []behindMember `json:"members"`

	// Refused are those whose last write the platform refused for good, the last
	// first, 100 at most.
	Refused []refusedMember `json:"refused,omitempty"`
}

type refusedMember struct {
	GUID      string    `json:"guid"`
	Reason    string    `json:"reason"`
	RefusedAt time.Time `json:"refused_at"`
}

type behindMember struct {
	GUID        string    `json:"guid"`
	Version     int64     `json:"version"`
	Applied     int64     `json:"applied"`
	Deleted     bool      `json:"deleted"`
	Attempts    int64     `json:"attempts"`
	Problem     string    `json:"problem"`
	NextAttempt time.Time `json:"next_attempt"`
}

func serveBehind(w http.ResponseWriter, r *http.Request, app *app.App) error {
	if r.Method != http.MethodGet {
		return useMethod(w, http.MethodGet)
	}
	const limit = 100
	return eachSite(w, r, app, membersOf, countMembers, func(v pending.View, site string) (any, error) {
		list, n, err := v.Outbox.Pending(r.Context(), site, limit)
		if err != nil {
			return nil, err
		}
		response := behindSite{Behind: n, Members: []behindMember{}}
		for _, m := range list {
			response.Members = append(response.Members, behindMember{
				m.GUID, m.Version, m.Applied, m.Deleted, m.Attempts, m.Problem, m.NextAttempt,
			})
		}
		refused, err := v.Outbox.Refused(r.Context(), site, limit)
		for _, m := range refused {
			response.Refused = append(response.Refused, refusedMember{m.GUID, m.Refused, m.RefusedAt})
		}
		return response, err
	})
}

func serveTry(w http.ResponseWriter, r *http.Request, app *app.App) error {
	if r.Method != http.MethodPost {
		return useMethod(w, http.MethodPost)
	}
	return eachSite(w, r, app, membersOf, countMembers, func(v pending.View, site string) (any, error) {
		return v.Outbox.TryNow(r.Context(), site)
	})
}

// membersOf is pendingOf where members_api is used.
func membersOf(running *app.App) (pending.View, bool) {
	v, ok := pendingOf(running)
	return v, ok && v.Outbox != nil
}

func countMembers(ctx context.Context, v pending.View) (map[string]int, error) {
	return v.Outbox.CountAll(ctx)
}
