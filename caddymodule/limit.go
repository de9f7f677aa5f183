package caddymodule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/members"
)

// Limit is an allowance: at most so many requests in any span of time of the
// window's length.
type Limit struct {
	// Requests is from 1 to 65535.
	Requests int `json:"requests,omitempty"`

	// Window is 1ms or longer.
	Window caddy.Duration `json:"window,omitempty"`
}

func (l *Limit) plain() ratelimit.Limit {
	return ratelimit.Limit{Requests: l.Requests, Window: time.Duration(l.Window)}
}

func (l *Limit) check() error {
	if l.Requests < 1 || l.Requests > ratelimit.MaxRequests || time.Duration(l.Window) < ratelimit.MinWindow {
		text := fmt.Sprintf("write 1 to %d requests and a window of %s or longer, such as ", ratelimit.MaxRequests, ratelimit.MinWindow)
		return &mistake{
			name: "limit", text: fmt.Sprintf("%d %s: %s10 1m", l.Requests, time.Duration(l.Window), text),
			json: fmt.Sprintf("%d requests in %s: ", l.Requests, time.Duration(l.Window)) + text + `{"requests": 10, "window": "1m"}`,
		}
	}
	return nil
}

// ParseLimit parses the limit of an integration as it is written on a command line, such
// as "600 1m". The empty text stands for the limit that all keys have.
func ParseLimit(text string) (*Limit, error) {
	switch args := strings.Fields(text); len(args) {
	case 0:
		return nil, nil
	case 2:
		return parseLimit(args)
	}
	return nil, errors.New("limit " + strconv.Quote(text) + `: write a number of requests and a window, such as "600 1m"`)
}

// ShowLimit returns the limit of an integration as ParseLimit reads it.
func ShowLimit(l members.Limit) string {
	if l == (members.Limit{}) {
		return ""
	}
	return fmt.Sprintf("%d %s", l.Requests, l.ShortWindow())
}

// parseLimit parses the arguments of a limit option: requests, and window.
func parseLimit(args []string) (*Limit, error) {
	requests, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, &mistake{name: "limit", text: strconv.Quote(args[0]) + " is not a number of requests: write it and a window, such as 10 1m"}
	}
	window, err := parseDuration("limit", args[1])
	if err != nil {
		return nil, err
	}
	limit := &Limit{Requests: requests, Window: window}
	return limit, limit.check()
}

func parseDuration(name, s string) (caddy.Duration, error) {
	duration, err := caddy.ParseDuration(s)
	if err != nil {
		return 0, &mistake{name: name, text: strconv.Quote(s) + " is not a duration, such as 90s, 10m, 24h or 7d"}
	}
	return caddy.Duration(duration), nil
}
