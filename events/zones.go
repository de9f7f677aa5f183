package events

import (
	_ "embed"
	"path"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // an edge may be in a container without time zones

	"github.com/lychgate/caddy-lychgate/internal/recent"
)

// zoneNames are the IANA names of time zones, one on each line: those in Go's zoneinfo.zip.
//
//go:embed zones.txt
var zoneNames string

// spelled has the names of time zones by their names in lower case.
var spelled = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for name := range strings.FieldsSeq(zoneNames) {
		names[strings.ToLower(name)] = name
	}
	return names
})

// spellZone leaves unknown names as they are.
func spellZone(name string) string {
	if known, ok := spelled()[strings.ToLower(name)]; ok {
		return known
	}
	return name
}

// zoneOf is UTC if the event has no valid time zone.
func zoneOf(values map[string]any) *time.Location {
	if zone, ok := parseZone(textOf(values, "event_time_zone")); ok {
		return zone
	}
	return time.UTC
}

// maxZone is longer than any name of a time zone.
const maxZone = 64

// zones caches 1,000 time zones, which would be read from a file each time, for an hour: their rules
// change. Some file systems know a zone by any number of names.
var zones = recent.New[string, *time.Location](1000, time.Hour)

// parseZone reads the IANA name of a time zone, in any case.
func parseZone(name string) (*time.Location, bool) {
	if len(name) > maxZone {
		return nil, false
	}
	name = spellZone(name)
	if zone, ok := zones.Get(name); ok {
		return zone, true
	}
	if name == "" || name == "Local" || path.Clean(name) != name || name[0] == '.' {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.Put(name, zone, time.Now())
	}
	return zone, err == nil
}
