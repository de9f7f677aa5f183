package events

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/mailbox"
)

// section reads docs/events.md.
func section(t *testing.T, title string) string {
	t.Helper()
	docs, err := os.ReadFile("../../docs/events.md")
	_, rest, found := strings.Cut(string(must(t, docs, err)), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/events.md has no section %s", title)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// What the walk through the example prints is in the example.
func TestDocumentedTheme(t *testing.T) {
	var theme strings.Builder
	err := fs.WalkDir(os.DirFS(themeFolder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(themeFolder + "/" + path)
		theme.Write(content)
		return err
	})
	if err != nil {
		t.Fatalf("fs.WalkDir: %v", err)
	}
	blocks := regexp.MustCompile("(?ms)^   ```(?:yaml|handlebars|js)\n(.*?)^   ```$").FindAllStringSubmatch(section(t, "In a theme"), -1)
	if len(blocks) < 8 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		if text := regexp.MustCompile("(?m)^   ").ReplaceAllString(block[1], ""); !strings.Contains(theme.String(), text) {
			t.Errorf("the example has no\n%s", text)
		}
	}
}

// The responses that docs/events.md prints are those of the edge, but for what each event has
// of its own: its ID, and when it was changed.
func TestDocumentedAnswers(t *testing.T) {
	s := newSite(t, "")
	s.keepMessages(map[string]string{"can_register": "Write to us, and you are on the list."})
	s.publish("webinar", map[string]any{
		"name": "Gates & doors", "slug": "gates", "description": "Two hours about what lets people in.",
		"feature_image": s.base + "/content/images/gates.jpg", "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_end": "21:00",
		"event_time_zone": "Europe/Berlin", "registration_deadline": "2031-04-30", "deadline_time_end": "12:00", "location": "The Pier",
		"max_attendees": 120, "access": "free", "platform_url": "https://meet.example.com/gates",
		"captions": true, "level": "Beginner", "price": 12.5, "speaker": "Ada Gate",
	})
	s.change(s.publish("webinar", map[string]any{
		"name": "Harbour day", "slug": "harbour", "event_date": "2031-06-01", "event_time_start": "10:00", "event_time_zone": "UTC",
		"access": "anyone", "platform_url": "https://meet.example.com/harbour", "speaker": "Ben Quay",
	}), "cancel")
	own := regexp.MustCompile(`\b[a-z2-7]{26}\b|(?:DTSTAMP|LAST-MODIFIED|SEQUENCE):\w+`)
	changed := regexp.MustCompile(`"updated_at": ?"[^"]*"`)
	examples := regexp.MustCompile("(?ms)^\\$ curl -s '?https://news\\.example\\.com(/.*?)'?(?: \\| jq)?\n(.*?)^```$").
		FindAllStringSubmatch(section(t, "For readers' scripts")+section(t, "Calendars"), -1)
	if len(examples) != 3 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		common := func(text string) string {
			return own.ReplaceAllString(changed.ReplaceAllString(text, `"updated_at": "its own"`), "its own")
		}
		want, got := common(example[2]), common(strings.ReplaceAll(s.get(example[1]), s.base, "https://news.example.com"))
		if strings.HasSuffix(example[1], ".ics") {
			diff(t, example[1], want, strings.ReplaceAll(got, "\r\n", "\n"))
		} else {
			diff(t, example[1], decoded(t, want), decoded(t, got))
		}
	}
}

// The way to the first registered reader is as docs/first_registration.md prints it.
func TestDocumentedRegistration(t *testing.T) {
	_, smtp := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	s := newSite(t, "")
	s.publish("meetup", map[string]any{"name": "First party", "event_date": "2031-05-01", "location": "The Pier", "max_attendees": 20, "access": "free"})
	docs, err := os.ReadFile("../../docs/first_registration.md")
	examples := regexp.MustCompile("(?ms)^\\$ (curl .*?[^\\\\])\n(.*?)^```$").FindAllStringSubmatch(string(must(t, docs, err)), -1)
	if len(examples) != 2 {
		t.Fatalf("%d examples, want 2", len(examples))
	}
	for _, example := range examples {
		command := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(strings.TrimSuffix(example[1], "| jq"), "https://news.example.com", s.base))
		output, err := command.Output()
		diff(t, example[1], decoded(t, example[2]), decoded(t, string(must(t, output, err))))
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return value
}
