package manifest

import (
	"cmp"
	"fmt"
	"strings"
)

// BuiltInImageSize is recommended for a featured image if neither the type nor
// the site says otherwise.
const BuiltInImageSize = "1200 x 630 px"

// Of looks the hints on a standard field up; the zero value is none.
func (list FieldConstraints) Of(key string) Constraints {
	for _, c := range list {
		if c.Field == key {
			return c.Constraints
		}
	}
	return Constraints{}
}

// ImagePhrase is what the editor shows under the Featured Image field and in the
// Crop Image dialog, such as "1200px wide, 630px tall, 16:9 aspect ratio"
// (docs/manifest.md, "Hints for standard fields"). siteSize is the site's Default Featured Image
// Size, or "".
func (t EventType) ImagePhrase(siteSize string) string {
	if isBlank(siteSize) {
		siteSize = BuiltInImageSize
	}
	return cmp.Or(t.FieldConstraints.Of("feature_image").ImagePhrase(), siteSize)
}

// ImagePhrase says in words what is recommended for an image, "" for nothing.
func (c Constraints) ImagePhrase() string {
	var parts []string
	if c.MinWidth > 0 {
		parts = append(parts, fmt.Sprintf("%dpx wide", c.MinWidth))
	}
	if c.MinHeight > 0 {
		parts = append(parts, fmt.Sprintf("%dpx tall", c.MinHeight))
	}
	if c.AspectRatio != "" {
		parts = append(parts, c.AspectRatio+" aspect ratio")
	}
	return strings.Join(parts, ", ")
}
