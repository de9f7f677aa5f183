package events

import (
	_ "embed"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // an edge may be in a container without time zones

	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
)

// zoneNames are the IANA names of time zones, one on each line: those in Go's zoneinfo.zip, without Factory, which is no
// place. Systems know more, such as posixrules and right/Europe/Berlin, whose clocks count leap seconds.
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

// zones caches time zones, which would be read from a file each time, for an hour: their rules change.
var zones = recent.New[string, *time.Location](1000, time.Hour)

// parseZone reads the IANA name of a time zone, in any case.
func parseZone(name string) (*time.Location, bool) {
	name, isKnown := spelled()[strings.ToLower(name)]
	if !isKnown {
		return nil, false
	}
	if zone, ok := zones.Get(name); ok {
		return zone, true
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.Put(name, zone, time.Now())
	}
	return zone, err == nil
}
