package manifest

import (
	"fmt"
	"math"
	"strings"
)

// BuiltInImageSize is recommended for a featured image if neither the type nor
// the site says otherwise.
const BuiltInImageSize = "1200 x 630 px"

// FeatureImage returns the hint on the featured image, and whether there is any.
func (t EventType) FeatureImage() (Constraints, bool) {
	for _, c := range t.FieldConstraints {
		if c.Field == "feature_image" {
			return c.Constraints, true
		}
	}
	return Constraints{}, false
}

// ImagePhrase is what the editor shows under the Featured Image field and in the
// Crop Image dialog, such as "1200px wide, 630px tall, 16:9 aspect ratio"
// (docs/manifest.md, "Hints for standard fields"). siteSize is the site's Default Featured Image
// Size, or "".
func (t EventType) ImagePhrase(siteSize string) string {
	c, there := t.FeatureImage()
	if !there {
		if isBlank(siteSize) {
			return BuiltInImageSize
		}
		return siteSize
	}
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

// CropRatio is the shape of the crop frame as width:height, or "" if it is free.
// Only aspect_ratio shapes it.
func (t EventType) CropRatio() string {
	c, _ := t.FeatureImage()
	return c.AspectRatio
}

// ImageSize returns the size, in pixels, of the image that the editor makes of a
// crop: that of the crop, or scaled up in its shape to min_width and min_height.
func (t EventType) ImageSize(cropWidth, cropHeight int) (width, height int) {
	c, _ := t.FeatureImage()
	if cropWidth <= 0 || cropHeight <= 0 {
		return cropWidth, cropHeight
	}
	// The same factor for both sides; the one that needs it more meets its
	// minimum exactly.
	byWidth := float64(c.MinWidth) / float64(cropWidth)
	byHeight := float64(c.MinHeight) / float64(cropHeight)
	switch {
	case byWidth <= 1 && byHeight <= 1:
		return cropWidth, cropHeight
	case byWidth >= byHeight:
		return c.MinWidth, max(c.MinHeight, int(math.Round(float64(cropHeight)*byWidth)))
	}
	return max(c.MinWidth, int(math.Round(float64(cropWidth)*byHeight))), c.MinHeight
}
