package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

const archivedNewsletter = "One of the newsletters is archived in Ghost."

// checkNewsletters refuses newsletters that do not exist or are archived. Ghost takes
// archived ones, and signs nobody up for them, so it is asked before.
func (c api) checkNewsletters(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if slices.ContainsFunc(ids, func(id string) bool { return !isID(id) }) {
		return &platform.Refusal{Reason: unknownNewsletter}
	}
	var response struct {
		Newsletters []struct{ ID, Status string }
	}
	query := url.Values{
		"filter": {"id:" + oneOf(ids)}, "fields": {"id,status"}, "limit": {strconv.Itoa(len(ids))},
	}
	if err := c.call(ctx, http.MethodGet, "/newsletters/", query, nil, &response); err != nil {
		if errors.Is(err, platform.ErrNotFound) { // which would mean the member
			err = errNoNewsletters
		}
		return platform.NoEffect(fmt.Errorf("reading newsletters: %w", err))
	}
	status := make(map[string]string, len(response.Newsletters))
	for _, n := range response.Newsletters {
		status[n.ID] = n.Status
	}
	switch {
	case slices.ContainsFunc(ids, func(id string) bool { return status[id] == "" }):
		return &platform.Refusal{Reason: unknownNewsletter}
	case slices.ContainsFunc(ids, func(id string) bool { return status[id] == "archived" }):
		return &platform.Refusal{Reason: archivedNewsletter}
	}
	return nil
}

var errNoNewsletters = errors.New("asking Ghost: it does not know its newsletters; is this Ghost's own address?")

// isID reports whether a text may be an ID of Ghost's: 24 hexadecimal digits.
func isID(text string) bool {
	const digits = 24
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}
