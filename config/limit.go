package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/members"
)

// Duration is a time span. JSON has it as a string with units, such as "90s" or "7d", or in
// nanoseconds.
type Duration time.Duration

var days = regexp.MustCompile(`(\d+(?:\.\d+)?)d`)

// ParseDuration parses a duration as [time.ParseDuration] does, and days of 24 hours: 7d.
func ParseDuration(s string) (time.Duration, error) {
	return time.ParseDuration(days.ReplaceAllStringFunc(s, func(d string) string {
		n, _ := strconv.ParseFloat(strings.TrimSuffix(d, "d"), 64)
		return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	}))
}

// UnmarshalJSON reads either form.
func (d *Duration) UnmarshalJSON(data []byte) error {
	text, err := strconv.Unquote(string(data))
	if err != nil {
		return json.Unmarshal(data, (*int64)(d))
	}
	duration, err := ParseDuration(text)
	*d = Duration(duration)
	return err
}

// Limit is an allowance: at most so many requests in any span of time of the
// window's length.
type Limit struct {
	// Requests is from 1 to 65535.
	Requests int `json:"requests,omitempty"`

	// Window is 1ms or longer.
	Window Duration `json:"window,omitempty"`
}

// Plain returns the limit as a limiter takes it.
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

// ShowLimit returns the limit of an integration as ParseLimitText reads it.
func ShowLimit(l members.Limit) string {
	if l == (members.Limit{}) {
		return ""
	}
	return fmt.Sprintf("%d %s", l.Requests, l.ShortWindow())
}

// ParseDurationOf parses the duration that an option has in a Caddyfile.
func ParseDurationOf(option, s string) (Duration, error) {
	duration, err := ParseDuration(s)
	if err != nil {
		return 0, &Mistake{Option: option, Text: quote(s) + " is not a duration, such as 90s, 10m, 24h or 7d"}
	}
	return Duration(duration), nil
}
