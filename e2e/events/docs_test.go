package events

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lychgate/caddy-lychgate/e2e/mailbox"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// section reads a page of docs.
func section(t *testing.T, page, title string) string {
	t.Helper()
	docs, err := os.ReadFile("../../docs/" + page)
	_, rest, found := strings.Cut(string(must(t, docs, err)), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/%s has no section %s", page, title)
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
	blocks := regexp.MustCompile("(?ms)^   ```(?:yaml|handlebars|js)\n(.*?)^   ```$").FindAllStringSubmatch(section(t, "events_themes.md", "Step by step"), -1)
	if len(blocks) < 8 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		if text := regexp.MustCompile("(?m)^   ").ReplaceAllString(block[1], ""); !strings.Contains(theme.String(), text) {
			t.Errorf("the example has no\n%s", text)
		}
	}
}

// The responses that docs/events_api.md prints are those of the edge, but for what each event has
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
		FindAllStringSubmatch(section(t, "events_api.md", "For readers' scripts")+section(t, "events_api.md", "Calendars"), -1)
	if len(examples) != 2 {
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

// One Ghost with events is as docs/one_ghost.md prints it, from the Caddyfile to the backup.
func TestDocumentedWay(t *testing.T) {
	text, err := os.ReadFile("../../docs/one_ghost.md")
	page := string(must(t, text, err))
	block := func(language, has string) string {
		for _, found := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
			if strings.Contains(found[1], has) {
				return found[1]
			}
		}
		t.Fatalf("the page has no block of %s with %s", language, has)
		return ""
	}
	box, smtp := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	t.Setenv("SMTP_URL", "smtp://127.0.0.1:"+smtp)
	s, edge := startSite(t, "", strings.NewReplacer("hosts news.example.com", "hosts localhost", "news.example.com {", "http://localhost:{{port}} {",
		"/var/lib/lychgate/lychgate.db", "{{store}}", "http://127.0.0.1:2368", "{{ghost}}", "127.0.0.1:2368", "{{upstream}}",
		"{\n\tlychgate", "{\n\t{{global}}\n\tlychgate").Replace(block("caddyfile", "lychgate {")))
	run := func(command string) (string, error) {
		if !strings.Contains(page, command) {
			t.Errorf("the page has no %s", command)
		}
		shell := exec.CommandContext(t.Context(), "bash", "-c", strings.NewReplacer("https://news.example.com", s.base, "./caddy", caddytest.Build(t), "| jq", "").Replace(command))
		shell.Dir = edge.Folder
		output, err := shell.CombinedOutput()
		return string(output), err
	}
	for command, ok := range map[string]string{
		"./caddy validate":                           `^Valid configuration$`,
		"./caddy lychgate backup lychgate-backup.db": `checked\.$`,
	} {
		if output, err := run(command); err != nil || !regexp.MustCompile("(?m)"+ok).MatchString(output) {
			t.Errorf("%s: %v: %s", command, err, output)
		}
	}
	output, _ := run("./caddy lychgate doctor")
	if failed := regexp.MustCompile(`(?m)^failed +(.*)$`).FindAllString(output, -1); strings.Count(output, "\nok ") < 6 || len(failed) > strings.Count(output, "failed   resolver ") { // this machine may have no DNS server
		t.Errorf("the doctor: %s", output)
	}

	theme := s.download("source")
	theme["lychgate-manifest.yaml"] = &fstest.MapFile{Data: []byte(block("yaml", "events:"))}
	theme["custom-meetup.hbs"] = &fstest.MapFile{Data: []byte(block("handlebars", "{{#post}}"))}
	home := theme["home.hbs"]
	home.Data = append(home.Data, block("handlebars", "hash-lead")...)
	if got := s.upload("my-theme", theme); len(got.Themes) != 1 || len(got.Themes[0].Errors)+len(got.Errors) > 0 {
		t.Fatalf("the upload: %+v", got)
	}
	s.activate("my-theme")

	e := s.publishOf("my-theme", "meetup", map[string]any{"name": "First party", "event_date": "2031-05-01", "location": "The Pier", "max_attendees": 20, "access": "free"})
	command, want, _ := strings.Cut(strings.TrimPrefix(block("console", "/registration"), "$ "), "\n")
	registration, err := run(command)
	diff(t, command, decoded(t, want), decoded(t, must(t, registration, err)))
	p := s.visitor("/first-party/")
	diff(t, "a guest", "login_required_free", p.state())
	p.sendLink("jane@example.com")
	p.Must(p.Navigate(s.link(box, "jane@example.com")))
	p.Until("element.state.state === 'registered'")
	if mail := box.Wait(t, "jane@example.com"); !strings.Contains(mail, "You are registered.") {
		t.Errorf("the mail: %s", mail)
	}
	s.send("PUT", "/ghost/lychgate/curation/front/lead", map[string]any{"post": e.Post.ID, "from_all": true}, nil)
	if front := s.get("/"); !strings.Contains(front, `/first-party/">First party</a>`) {
		t.Errorf("the front page has no lead story: %s", front)
	}
	if list := s.get("/ghost/lychgate/desk/events/" + e.ID + "/registrations"); !strings.Contains(list, "jane@example.com") {
		t.Errorf("the guest list: %s", list)
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return value
}
