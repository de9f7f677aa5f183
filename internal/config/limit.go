package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// Limit is an allowance: at most so many requests in any span of time of the
// window's length.
type Limit struct {
	// Requests is from 1 to 65535.
	Requests int `json:"requests,omitempty"`

	// Window is 1ms or longer.
	Window Duration `json:"window,omitempty"`
}

// Plain converts the limit to the limiter's own type.
func (l *Limit) Plain() ratelimit.Limit {
	return ratelimit.Limit{Requests: l.Requests, Window: time.Duration(l.Window)}
}

// Check checks the limit of an option that is called so.
func (l *Limit) Check() error {
	if l.Requests < 1 || l.Requests > ratelimit.MaxRequests || time.Duration(l.Window) < ratelimit.MinWindow {
		return &Mistake{Option: "limit", Text: fmt.Sprintf(`%d requests in %s: write 1 to %d requests and a window of %s or longer, such as ‹10 1m|{"requests": 10, "window": "1m"}›`,
			l.Requests, time.Duration(l.Window), ratelimit.MaxRequests, ratelimit.MinWindow)}
	}
	return nil
}

// ParseLimit parses the arguments of a limit option: requests, and window.
func ParseLimit(args []string) (*Limit, error) {
	requests, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, &Mistake{Option: "limit", Text: quote(args[0]) + " is not a number of requests: write it and a window, such as 10 1m"}
	}
	window, err := ParseDurationOf("limit", args[1])
	if err != nil {
		return nil, err
	}
	return &Limit{Requests: requests, Window: window}, nil
}

// ParseLimitText parses the limit of an integration as it is written on a command line, such
// as "600 1m". The empty text stands for the limit that all keys have.
func ParseLimitText(text string) (*Limit, error) {
	switch args := strings.Fields(text); len(args) {
	case 0:
		return nil, nil
	case 2:
		limit, err := ParseLimit(args)
		if err == nil {
			err = limit.Check()
		}
		return limit, err
	}
	return nil, errors.New("limit " + quote(text) + `: write a number of requests and a window, such as "600 1m"`)
}

// ShowLimit writes the limit of an integration as ParseLimitText reads it.
func ShowLimit(l members.Limit) string {
	if l == (members.Limit{}) {
		return ""
	}
	return fmt.Sprintf("%d %s", l.Requests, l.ShortWindow())
}
