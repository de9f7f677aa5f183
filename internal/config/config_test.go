package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// A mistake is told in the form it was made in, Caddyfile or JSON.
func Example() {
	var c config.Config
	if err := json.Unmarshal([]byte(`{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "integrations": {"crm": {"mode": "id"}}}}}`), &c); err != nil {
		panic(err)
	}
	_, err := c.Sites["daily"].ResolveIntegrations(config.Placeholders{})
	err = config.In("site daily", "sites.daily", err)
	fmt.Println(config.Lines{"sites.daily": "Caddyfile:3", "sites.daily.integrations.crm.mode": "Caddyfile:7"}.Explain(err))
	fmt.Println(config.JSONText(err))
	// Output:
	// site daily: integration crm: mode "id": write email or custom_id, at Caddyfile:7
	// sites.daily.integrations.crm.mode: "id": write "email" or "custom_id"
}

// A mistake without a line of its own has that of the nearest block around it.
func TestMistakesHaveTheNearestLine(t *testing.T) {
	lines := config.Lines{"": "Caddyfile:1", "sites.daily": "Caddyfile:3", "sites.daily.hosts": "Caddyfile:4"}
	for path, want := range map[string]string{
		"sites.daily.hosts": "Caddyfile:4", "sites.daily.platform.url": "Caddyfile:3", "sites.weekly": "Caddyfile:1", "": "Caddyfile:1",
	} {
		if got := lines.Of(path); got != want {
			t.Errorf("the line of %q is %q, want %q", path, got, want)
		}
	}
	if got := config.Lines(nil).Place("sites.daily"); got != "sites.daily" {
		t.Errorf("the place without lines is %q, want the path", got)
	}
}

// What programs ask of a cause is answered through the place of a mistake.
func TestMistakeKeepsItsCause(t *testing.T) {
	cause := errors.New("no such shelf")
	err := config.In("site daily", "sites.daily", config.In("platform shelf", "platform", cause))
	if !errors.Is(err, cause) || err.Error() != "site daily: platform shelf: no such shelf" || config.JSONText(err).Error() != "sites.daily.platform: no such shelf" {
		t.Errorf("%q and %q, want the cause behind both places", err, config.JSONText(err))
	}
	if config.In("site daily", "sites.daily", nil) != nil {
		t.Errorf("In of no error: got %v, want nil", config.In("site daily", "sites.daily", nil))
	}
}

// Whatever values messages quote, nothing panics, and the value stands in both forms.
func TestMistakeOfAnyValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[^‹›]{0,20}`).Draw(t, "value")
		m := &config.Mistake{Option: "hosts", Text: value + "‹a|b›‹c›"}
		want := [2]string{value + "ac", value + `b"c"`}
		caddyfile, jsonText := m.Error(), m.JSON()
		if len(caddyfile) < len(want[0]) || caddyfile[len(caddyfile)-len(want[0]):] != want[0] || jsonText != "hosts: "+want[1] {
			t.Errorf("%q and %q, want %q at their ends", caddyfile, jsonText, want)
		}
		_ = (&config.Mistake{Text: rapid.String().Draw(t, "any")}).Error()
	})
}

// What messages quote is shown as it was written, also if it has the marks of a message's text.
func TestQuotedMarks(t *testing.T) {
	var c config.Config
	if err := json.Unmarshal([]byte(`{"sites": {"daily": {"integrations": {"crm": {"mode": "‹a|b›"}}}}}`), &c); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	_, err := c.Sites["daily"].ResolveIntegrations(config.Placeholders{})
	if got, want := err.Error(), `integration crm: mode "\u2039a|b\u203a": write email or custom_id`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Durations are written as in Caddy: with days too, and as nanoseconds in adapted JSON.
func TestDurationsAreWrittenAsInCaddy(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"90s"`: 90 * time.Second, `"7d"`: 7 * 24 * time.Hour, `"1d12h"`: 36 * time.Hour, `"1.5d"`: 36 * time.Hour, `60000000000`: time.Minute,
	} {
		var got config.Duration
		if err := json.Unmarshal([]byte(text), &got); err != nil || time.Duration(got) != want {
			t.Errorf("%s = %v, %v, want %v", text, time.Duration(got), err, want)
		}
		encoded, err := json.Marshal(got)
		if diff := cmp.Diff(strconv.FormatInt(int64(want), 10), string(encoded)); diff != "" || err != nil {
			t.Errorf("%s as JSON: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{`"day"`, `"d"`, `"7"`, `""`, `{}`, `1.5`} {
		var got config.Duration
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s = %v, want an error", text, time.Duration(got))
		}
	}
}

// A configuration that Caddy saved when adapted JSON had lines is loaded with --resume.
func TestFormerFields(t *testing.T) {
	var c config.Config
	text := `{"service": "outpost", "lines": {"service": "Caddyfile:3"}, "sites": {"daily": {"hosts": ["a.example"]}}}`
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Service != "outpost" {
		t.Errorf("%s: %v, service %q, want outpost", text, err, c.Service)
	}
	for _, text := range []string{`{"lines_": {}}`, `{"sites": {"daily": {"lines": {}}}}`} {
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s: a field that no version has had was taken", text)
		}
	}
}

// FuzzReadJSON sends any JSON as a configuration: it is refused with a message, or read.
func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(`{"sites": {"daily": {"hosts": ["news.example.com"], "themes": {"nightly": {"repository": {"url": "https://git.example.com/a.git"}}}}}}`))
	f.Add([]byte(`{"store": {"kind": "sqlite"}, "redis": {"timeout": "50ms"}, "sites": {"a": null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c config.Config
		if json.Unmarshal(text, &c) != nil {
			return
		}
		if err := c.Check(config.Placeholders{Replacer: none{}}); err != nil && config.JSONText(err).Error() == "" {
			t.Errorf("%s is refused without a message", text)
		}
	})
}

// none knows no placeholders.
type none struct{}

func (none) GetString(string) (string, bool) { return "", false }

func (none) ReplaceOrErr(text string, _, _ bool) (string, error) { return text, nil }
