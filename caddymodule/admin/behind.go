package admin

import (
	"net/http"
	"time"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file has the paths of before there was one view of all that is pending. They stay until the next release.

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

func serveBehind(w http.ResponseWriter, r *http.Request, app *caddymodule.App) error {
	if r.Method != http.MethodGet {
		return useMethod(w, http.MethodGet)
	}
	const limit = 100
	return eachSite(w, r, app, membersOf, outbox.Kind, func(queue *work.Queue, site string) (any, error) {
		kept := app.Edge.Members().Serving().Store
		n, err := kept.CountPending(r.Context(), site)
		if err != nil {
			return nil, err
		}
		list, err := kept.Pending(r.Context(), site, limit)
		if err != nil {
			return nil, err
		}
		response := behindSite{Behind: n, Members: []behindMember{}}
		for _, m := range list {
			response.Members = append(response.Members, behindMember{
				m.GUID, m.Version, m.Applied, m.Deleted, m.Attempts, m.Problem, m.NextAttempt,
			})
		}
		refused, err := queue.Refused(r.Context(), site, limit)
		for _, t := range refused {
			if t.Kind == outbox.Kind {
				response.Refused = append(response.Refused, refusedMember{t.Key, t.Reason, t.Since})
			}
		}
		return response, err
	})
}

func serveTry(w http.ResponseWriter, r *http.Request, app *caddymodule.App) error {
	if r.Method != http.MethodPost {
		return useMethod(w, http.MethodPost)
	}
	return eachSite(w, r, app, membersOf, outbox.Kind, func(queue *work.Queue, site string) (any, error) {
		tried, err := queue.TryNow(r.Context(), site)
		return tried[outbox.Kind], err
	})
}

// membersOf is pendingOf where members_api is used.
func membersOf(running *caddymodule.App) (*work.Queue, bool) {
	queue, ok := pendingOf(running)
	return queue, ok && running.Edge.Members().Serving() != nil
}
