package ghost

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// bulk matches the paths of requests that change members of whom Ghost then sends no
// webhook (seen with 5.130.4 and 6.22.0), behind Ghost's own: in any case, with slashes
// doubled, with or without one at the end, and under the names of older versions of
// the API. It needs the method in front of the path.
var bulk = regexp.MustCompile(`(?i)^(?:` +
	`PUT .*/+ghost/+api/+` + version + `admin/+(?:members/+bulk|labels/+[^/]+|newsletters/+[^/]+)` +
	`|DELETE .*/+ghost/+api/+` + version + `admin/+(?:members|labels/+[^/]+|members/+[^/]+/+suppression)` +
	`|POST .*/+ghost/+api/+` + version + `admin/+(?:members/+upload|newsletters|db)` +
	`)/*$`)

const version = `(?:(?:v[234]|canary)/+)?`

// upload matches those of them that Ghost may go on with after its response.
var upload = regexp.MustCompile(`(?i)/(?:upload|db)/*$`)

// maxPath bounds the paths that are matched, in bytes. A longer one, made so by slashes,
// is no request of Ghost's admin.
const maxPath = 1 << 10

func (c *memberClient) ChangesInBulk(method, path string) (later []time.Duration, ok bool) {
	if method != http.MethodPut && method != http.MethodPost && method != http.MethodDelete || len(path) > maxPath ||
		!mayBeBulk(path) || !bulk.MatchString(method+" "+path) {
		return nil, false
	}
	if upload.MatchString(path) { // 520 members took a busy Ghost more than a minute
		later = []time.Duration{15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}
	}
	return later, true
}

// mayBeBulk saves most requests the pattern, which takes longer than all else that is
// done to let one pass.
func mayBeBulk(path string) bool {
	path = strings.ToLower(path)
	return slices.ContainsFunc([]string{"/members", "/labels", "/newsletters", "/db"}, func(part string) bool {
		return strings.Contains(path, part)
	})
}
