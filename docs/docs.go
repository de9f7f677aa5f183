// Package docs holds those files of the documentation that the edge serves.
package docs

import _ "embed"

// ManifestSchema is the JSON Schema of a theme's manifest. Nobody may change it.
//
//go:embed manifest.schema.json
var ManifestSchema []byte
