package edge

import (
	"path"
	"slices"
	"strings"
)

// Paths are where the directives of a configuration are.
type Paths struct {
	Admin  []string // of theme_manifest
	Desk   []string // of staff_desk
	Lookup []string // of inbox_provider
}

// folders are where a platform may be, as the paths of the directives suggest: /blog for
// /blog/ghost. The root is always one.
func (p Paths) folders() []string {
	folders := []string{""}
	for _, at := range slices.Concat(p.Admin, p.Desk) {
		folders = append(folders, strings.TrimSuffix(path.Dir(at), "/"))
	}
	for _, at := range p.Lookup {
		folders = append(folders, strings.TrimSuffix(path.Dir(path.Dir(at)), "/"))
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}
