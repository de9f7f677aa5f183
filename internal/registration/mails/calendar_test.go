package mails

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// The calendar file of a mail is of the event as the mail says it, also while the platform does not have the change yet.
func TestCalendarFilesAreOfNow(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, map[string]any{"location": "The Pier"})
	file := func() (lines []string) {
		t.Helper()
		taken := b.taken()
		if len(taken) != 1 {
			t.Fatalf("%d mails, want one", len(taken))
		}
		_, part, _ := strings.Cut(taken[0].Data, "Content-Type: text/calendar")
		_, part, _ = strings.Cut(part, "\r\n\r\n")
		text, _, _ := strings.Cut(part, "\r\n--")
		raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\r\n", ""))
		b.must(err)
		return regexp.MustCompile(`(?m)^(?:METHOD|LOCATION|STATUS|SEQUENCE):[^\r]*`).FindAllString(string(raw), -1)
	}
	b.register(1)
	b.pass(0)
	first := file()
	b.edit(func(e *events.Event) {
		e.Values["location"] = "The Harbour"
		e.UpdatedAt = e.UpdatedAt.Add(time.Hour)
	})
	b.pass(ChangeDelay)
	moved := file()
	b.edit(func(e *events.Event) { e.Status = events.Cancelled })
	b.pass(ChangeDelay)
	if moved[1] <= first[1] {
		t.Errorf("%s, want a greater one than %s", moved[1], first[1])
	}
	want := [][]string{
		{"METHOD:PUBLISH", first[1], "LOCATION:The Pier", "STATUS:CONFIRMED"},
		{"METHOD:PUBLISH", moved[1], "LOCATION:The Harbour", "STATUS:CONFIRMED"},
		{"METHOD:CANCEL", moved[1], "LOCATION:The Harbour", "STATUS:CANCELLED"},
	}
	if diff := cmp.Diff(want, [][]string{first, moved, file()}); diff != "" {
		t.Errorf("the calendar files, want -, got +: %s", diff)
	}
}

// Text on the publication's colour can be read, whatever the colour is.
func TestTextOnColour(t *testing.T) {
	for accent, want := range map[string]string{"#15171A": "#fff", "#aa0055": "#fff", "#FF1A75": "#15171a", "#ffff00": "#15171a", "#FFFFFF": "#15171a", "": "#fff"} {
		if got := textOn(accent); got != want {
			t.Errorf("textOn(%q) = %s, want %s", accent, got, want)
		}
	}
}
