package inbox

import (
	"mime"
	"strconv"
	"strings"
)

// acceptsJSON reports whether the values of an Accept header (RFC 9110, section
// 12.5.1) name application/json or a type with the suffix +json (RFC 6839), and
// not with a weight of zero. A wildcard names neither.
func acceptsJSON(accept []string) bool {
	for _, value := range accept {
		for part := range strings.SplitSeq(value, ",") {
			mediaType, params, _ := mime.ParseMediaType(part)
			if mediaType != "application/json" && !strings.HasSuffix(mediaType, "+json") {
				continue
			}
			if weight, err := strconv.ParseFloat(params["q"], 64); err != nil || weight > 0 {
				return true
			}
		}
	}
	return false
}
