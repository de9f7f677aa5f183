package config

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
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

// ParseDurationOf parses the duration that an option has in a Caddyfile.
func ParseDurationOf(option, s string) (Duration, error) {
	duration, err := ParseDuration(s)
	if err != nil {
		return 0, &Mistake{Option: option, Text: quote(s) + " is not a duration, such as 90s, 10m, 24h or 7d"}
	}
	return Duration(duration), nil
}
