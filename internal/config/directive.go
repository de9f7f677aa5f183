package config

import (
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file checks the options of directives.

// DefaultAPIPath is the path of the members API.
const DefaultAPIPath = "/integration"

// CheckLookupPath checks a path at which lookups are to be answered. An error says what to
// write instead.
func CheckLookupPath(p string) error {
	switch {
	case strings.ContainsAny(p, "*?#{}"):
		return wrongPath(p, "write a plain path without wildcards and placeholders, such as /ghost/inbox-provider")
	case len(p) > 1 && strings.HasSuffix(p, "/"):
		return wrongPath(p, "write it without the slash at its end, such as "+strings.TrimRight(p, "/"))
	case !strings.HasPrefix(p, "/"), path.Clean(p) != p, strings.Count(p, "/") < 2:
		return wrongPath(p, "write a path of two or more segments, such as /ghost/inbox-provider")
	}
	return nil
}

func wrongPath(p, write string) error {
	return &Mistake{Option: "path", Text: quote(p) + ": " + write}
}

// CheckPath checks a path of which an option says where an API is.
func CheckPath(p, example string) error {
	if len(p) < 2 || p[0] != '/' || path.Clean(p) != p || strings.ContainsAny(p, "*?#{}%") || (&url.URL{Path: p}).EscapedPath() != p {
		return wrongPath(p, "write a plain path of ASCII letters, without a slash at its end, such as "+example)
	}
	return nil
}

// takenPaths are those of Ghost's admin and of the staff's pages, in a subdirectory too, and
// those of Ghost that readers' browsers ask for.
var takenPaths = regexp.MustCompile(`/ghost(/lychgate|/(api|assets|lychgate/(desk|themes|curation))(/.*)?)?$|` +
	`^/(assets|content(/.*)?|members(/api(/.*)?)?|public|r)$`)

// CheckOwnPath is CheckPath for an API to which all below its path belongs: none of
// takenPaths would be reached any more.
func CheckOwnPath(p, example string) error {
	if err := CheckPath(p, example); err != nil {
		return err
	}
	if takenPaths.MatchString(p) {
		return wrongPath(p, "would hide what Ghost or the desk answers there; write another, such as "+example)
	}
	return nil
}

// CheckRejectTo checks where rejected lookups are redirected to. An error says what to
// write instead.
func CheckRejectTo(target string) error {
	u, err := url.Parse(target)
	if err == nil && (strings.HasPrefix(target, "/") || platform.IsServer(u)) {
		return nil
	}
	return &Mistake{Option: "reject_to", Text: quote(target) + ": write a path such as / or a URL such as https://example.com/help"}
}

// CheckCacheTTL checks how long a response is kept.
func CheckCacheTTL(ttl Duration) error {
	if time.Duration(ttl) < time.Second {
		return &Mistake{Option: "cache_ttl", Text: time.Duration(ttl).String() + ": write a duration of 1s or longer, such as ‹24h›"}
	}
	return nil
}

// CheckCacheSize checks how many responses are kept.
func CheckCacheSize(size int64) error {
	if size < 1 || size > classifier.MaxSize {
		return &Mistake{Option: "cache_size", Text: strconv.FormatInt(size, 10) + ": write a number of answers from 1 to " + strconv.Itoa(classifier.MaxSize) + ", such as 1000000"}
	}
	return nil
}

// CheckMaxBody checks the bound of a body, in bytes.
func CheckMaxBody(size int64) error {
	if size < 1 {
		return &Mistake{Option: "max_body", Text: strconv.FormatInt(size, 10) + ": write a size of 1 byte or more, such as ‹64KiB|65536›"}
	}
	return nil
}
