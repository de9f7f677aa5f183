package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// This file manages the integrations of sites in the store on Caddy's admin API.

// shownIntegration is an integration without its key.
type shownIntegration struct {
	Name               string `json:"name"`
	Mode               string `json:"mode"`
	DuplicateEmails    bool   `json:"allow_duplicate_emails"`
	Adopt              bool   `json:"adopt_by_email"`
	PlaceholderDomain  string `json:"placeholder_domain"`
	SubscribeByDefault bool   `json:"subscribe_by_default"`

	// Limit is its rate limit, null for that of members_api.
	Limit *shownLimit `json:"limit"`

	CreatedAt time.Time `json:"created_at"`

	// RotatedAt is when its key was rotated last, null for one that never was.
	RotatedAt *time.Time `json:"rotated_at"`

	// RevokedAt is when its key was revoked, null for one that is valid.
	RevokedAt *time.Time `json:"revoked_at"`

	// LastUsedAt is when its key was used last, up to 10 minutes early, null for one that
	// never was.
	LastUsedAt *time.Time `json:"last_used_at"`

	// Key is shown once, when it was made.
	Key string `json:"key,omitempty"`
}

type shownLimit struct {
	Requests int    `json:"requests"`
	Window   string `json:"window"`
}

func showIntegration(i members.Integration) shownIntegration {
	shown := shownIntegration{
		Name: i.Name, Mode: string(i.Mode), DuplicateEmails: i.DuplicateEmails, Adopt: i.Adopt, PlaceholderDomain: i.PlaceholderDomain,
		SubscribeByDefault: i.SubscribeByDefault, CreatedAt: i.CreatedAt.UTC().Truncate(time.Millisecond),
	}
	if i.Limit != (members.Limit{}) {
		shown.Limit = &shownLimit{i.Limit.Requests, i.Limit.ShortWindow()}
	}
	if !i.RotatedAt.IsZero() {
		shown.RotatedAt = &i.RotatedAt
	}
	if !i.RevokedAt.IsZero() {
		shown.RevokedAt = &i.RevokedAt
	}
	if !i.LastUsedAt.IsZero() {
		shown.LastUsedAt = &i.LastUsedAt
	}
	return shown
}

// newIntegration is what a request to add an integration has.
type newIntegration struct {
	Name string `json:"name,omitempty"`
	config.Integration
}

// integrations has the endpoints of a site's integrations. A name selects one; without it they are
// the endpoints of all.
func integrations(ctx context.Context, editor *config.Editor, stored *edge.StoredSites, site string, name []string) (endpoints, error) {
	if _, err := editor.Find(ctx, site); err != nil {
		return nil, err
	}
	keys := &members.KeyService{Store: stored.Integrations(), Now: time.Now}
	if len(name) == 1 {
		return oneIntegration(keys, site, name[0]), nil
	}
	return endpoints{
		http.MethodGet: func(w http.ResponseWriter, r *http.Request) error {
			list, err := keys.Store.ListIntegrations(r.Context(), site)
			if err != nil {
				return err
			}
			shown := []shownIntegration{}
			for _, i := range list {
				shown = append(shown, showIntegration(i))
			}
			return writeJSON(w, http.StatusOK, map[string]any{"integrations": shown})
		},
		http.MethodPost: func(w http.ResponseWriter, r *http.Request) error {
			return addIntegration(w, r, keys, site)
		},
	}, nil
}

func oneIntegration(keys *members.KeyService, site, name string) endpoints {
	orMissing := func(err error) error {
		if errors.Is(err, members.ErrNotFound) {
			return apiError(http.StatusNotFound, fmt.Errorf("site %s has no integration %s in the store", site, name))
		}
		return err
	}
	return endpoints{
		http.MethodPost: func(w http.ResponseWriter, r *http.Request) error {
			key, err := keys.Rotate(r.Context(), site, name)
			if err != nil {
				return orMissing(err)
			}
			return writeJSON(w, http.StatusOK, map[string]string{"name": name, "key": key})
		},
		http.MethodPatch: func(w http.ResponseWriter, r *http.Request) error {
			return orMissing(limitIntegration(w, r, keys, site, name))
		},
		http.MethodDelete: func(w http.ResponseWriter, r *http.Request) error {
			if err := keys.Revoke(r.Context(), site, name); err != nil {
				return orMissing(err)
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		},
	}
}

// integrationPatch is what a request to change an integration may have.
type integrationPatch struct {
	Limit *config.Limit `json:"limit,omitempty"`
}

// limitIntegration gives an integration the rate limit that a merge patch (RFC 7396) has,
// or that of members_api for null.
func limitIntegration(w http.ResponseWriter, r *http.Request, keys *members.KeyService, site, name string) error {
	body := readBody(r)
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return badRequest(errors.New(`write an object with what changes, such as {"limit": {"requests": 600, "window": "1m"}}`))
	}
	var patch integrationPatch
	if err := config.ReadJSON(body, &patch); err != nil {
		return badRequest(err)
	}
	if len(fields) == 0 {
		return badRequest(errors.New(`limit: write it, such as {"requests": 600, "window": "1m"}, or null for that of members_api`))
	}
	var limit members.Limit
	if patch.Limit != nil {
		if err := patch.Limit.Check(); err != nil {
			return badRequest(config.JSONText(err))
		}
		limit = members.Limit(patch.Limit.Plain())
	}
	if err := keys.Limit(r.Context(), site, name, limit); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func addIntegration(w http.ResponseWriter, r *http.Request, keys *members.KeyService, site string) error {
	body := readBody(r)
	if !config.IsObject(body) || !json.Valid(body) {
		return badRequest(errors.New(`write a JSON object, such as {"name": "crm"}`))
	}
	var add newIntegration
	if err := config.ReadJSON(body, &add); err != nil {
		return badRequest(err)
	}
	if add.Key != "" {
		return badRequest(errors.New("key: leave it out: it is made here"))
	}
	if err := config.CheckName("name", "name", add.Name, "crm"); err != nil {
		return badRequest(config.JSONText(err))
	}
	plain, err := add.CheckNew(add.Name)
	if err != nil {
		return badRequest(err)
	}
	plain.Site = site
	key, plain, err := keys.Add(r.Context(), plain)
	if err != nil {
		return err
	}
	shown := showIntegration(plain)
	shown.Key = key
	return writeJSON(w, http.StatusCreated, shown)
}
