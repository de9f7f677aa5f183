package ghost

import (
	"strings"
	"time"
)

// This file writes filters in the language of Ghost's API, NQL.

// NQL, the filter language of Ghost's API, escapes `\'` and `\"` alone. A backslash before anything
// else stands for itself, so a string that ends with one may only be the last of a filter.
func quote(s string) string {
	return "'" + strings.NewReplacer(`'`, `\'`, `"`, `\"`).Replace(s) + "'"
}

func oneOf(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		quoted = append(quoted, quote(value))
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

func second(t time.Time) string { return quote(t.UTC().Format(time.DateTime)) }
