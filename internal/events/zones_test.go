package events

import (
	"archive/zip"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Only IANA names of time zones are known, in any case and in no other way: what is known is
// kept.
func TestOnlyIANAZonesAreKnown(t *testing.T) {
	for name, want := range map[string]string{
		"Europe/Berlin": "Europe/Berlin", "europe/berlin": "Europe/Berlin", "AMERICA/PORT-AU-PRINCE": "America/Port-au-Prince",
		"america/argentina/buenos_aires": "America/Argentina/Buenos_Aires", "UTC": "UTC", "utc": "UTC", "antarctica/dumontdurville": "Antarctica/DumontDUrville",
		"": "", "Local": "", "local": "", "Mars/Base": "", "Europe//Berlin": "", "Europe/./Berlin": "", "Europe/Berlin/": "",
		"./UTC": "", "../zoneinfo/UTC": "", "Europe/../UTC": "", "/usr/share/zoneinfo/UTC": "", strings.Repeat("a", 65): "",
		"Factory": "", "posixrules": "", "localtime": "", "posix/Europe/Berlin": "", "right/Europe/Berlin": "", // which some systems have
	} {
		for range 2 {
			got := ""
			if zone, ok := parseZone(name); ok {
				got = zone.String()
			}
			if got != want {
				t.Errorf("%q is the zone %q, want %q", name, got, want)
			}
		}
	}
}

// Each time zone that Go knows is found in lower case.
func TestZoneNames(t *testing.T) {
	root, err := osexec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("needs the go command: %v", err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skipf("needs Go's zoneinfo.zip: %v", err)
	}
	defer archive.Close()
	for _, file := range archive.File {
		if name := file.Name; !strings.HasSuffix(name, "/") && name != "Factory" && spellZone(strings.ToLower(name)) != name {
			t.Errorf("%q is spelled %q, want %q: write zones.txt anew", strings.ToLower(name), spellZone(strings.ToLower(name)), name)
		}
	}
	for name := range strings.FieldsSeq(zoneNames) {
		if _, ok := parseZone(name); !ok {
			t.Errorf("%q is in zones.txt, and no time zone", name)
		}
	}
}

// A zone is kept as IANA spells it, whatever its case.
func TestZoneIsSpelled(t *testing.T) {
	values, err := Edit{"solo", "webinar", map[string]any{"event_time_zone": " europe/berlin ", "name": " Party "}}.checked()
	if diff := cmp.Diff(map[string]any{"event_time_zone": "Europe/Berlin", "name": "Party"}, values); diff != "" || err != nil {
		t.Errorf("what is kept (-want +got), %v: %s", err, diff)
	}
	e := newEvent(map[string]any{"event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "europe/berlin"}) // of a draft of before
	public := e.public(Post{}).values()
	if diff := cmp.Diff([]any{"Europe/Berlin", "2031-05-01T19:00:00+02:00"}, []any{public["event_time_zone"], public["start"]}); diff != "" {
		t.Errorf("zone and start for readers (-want +got): %s", diff)
	}
}
