package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/internal/web/internal/list"
)

// What the page answers by itself is what the server would have answered.
func TestListIsTheServers(t *testing.T) {
	want, err := list.Write(source, classifier.BuiltIn())
	if err != nil {
		t.Fatalf("list.Write: %v", err)
	}
	if !bytes.Equal(source, want) {
		t.Error("inbox-button.js has another list, want that of the classifier: run go generate ./internal/web")
	}
}

func TestWriteReplacesTheList(t *testing.T) {
	webmails := []classifier.Webmail{{Provider: "new", Name: "New Mail", Domains: []string{"a.example", "b.example"}}}
	got, err := list.Write([]byte("before\n\tconst list = {\n\t\told: [],\n\t};\nafter\n"), webmails)
	want := "before\n\tconst list = {\n\t\tnew: ['New Mail', 'a.example b.example'],\n\t};\nafter\n"
	if string(got) != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, script := range []string{"", "\tconst list = {\n"} {
		if got, err := list.Write([]byte(script), webmails); err == nil {
			t.Errorf("%q became %q", script, got)
		}
	}
	webmails[0].Name = "O'Mail"
	if got, err := list.Write(script, webmails); err == nil {
		t.Errorf("a quote broke out: %s", got[:400])
	}
}

// Each provider that a lookup can answer has a link.
func TestEachProviderHasALink(t *testing.T) {
	_, links, _ := strings.Cut(string(source), "const webmails = {")
	links, _, _ = strings.Cut(links, "\n\t};")
	for _, provider := range classifier.Providers() {
		if !strings.Contains(links, "\n\t\t"+string(provider)+": [") {
			t.Errorf("%s has no link", provider)
		}
	}
}

// Readers on slow phones load these beside everything else, compressed as Caddy does it (e2e/events has zstd).
func TestScriptsAreSmall(t *testing.T) {
	options := EventOptions{Events: "/ghost/lychgate/events", Registration: true, Fields: true, Button: "/ghost/lychgate/inbox-button.js"}
	type limit struct {
		script []byte
		below  int // bytes, compressed
	}
	scripts := map[string]limit{"the inbox button": {script, 6144}, "the script of lists of events": {EventsScript(options), 4480}}
	for _, line := range regexp.MustCompile(`(?m)^\t\t([a-z]{2}): '`).FindAllSubmatch(eventSource, -1) {
		options.Language = string(line[1])
		scripts["the script of an event in "+options.Language] = limit{EventScript(options), 8192}
	}
	for name, c := range scripts {
		var compressed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&compressed, 5)
		w.Write(c.script)
		w.Close()
		t.Logf("%s: %d bytes, %d compressed", name, len(c.script), compressed.Len())
		if compressed.Len() >= c.below {
			t.Errorf("%s: %d bytes compressed, want less than %d", name, compressed.Len(), c.below)
		}
	}
}

// The script of an event's page has the options, and nothing of a path ends it.
func TestEventScript(t *testing.T) {
	options := EventOptions{Events: "/</script>'\u2028", Registration: true}
	got := string(EventScript(options))
	const want = `const site = {"events":"/\u003c/script\u003e'\u2028","registration":true,"fields":false,"button":"","language":"en"};`
	if strings.Count(got, want) != 1 || strings.Contains(got, "</script>") {
		t.Errorf("the script lacks %s: %s", want, got[:600])
	}
	for language, want := range map[string][]string{"en": nil, "de": {"de"}, "no": {"nb"}} {
		script := string(EventScript(EventOptions{Language: language}))
		var found []string
		for _, phrase := range regexp.MustCompile(`(?m)^(ar|de|nb|zh): '`).FindAllStringSubmatch(script, -1) {
			found = append(found, phrase[1])
		}
		if !slices.Equal(found, want) || !strings.Contains(script, `"language":"`+language+`"`) {
			t.Errorf("%q: the script has %q, want %q", language, found, want)
		}
	}
	_, known, _ := strings.Cut(string(eventSource), ".find(lang => '")
	known, _, _ = strings.Cut(known, "'.split(' ')")
	var has []string
	for _, line := range regexp.MustCompile(`(?m)^\t\t([a-z]{2}): '`).FindAllStringSubmatch(string(eventSource), -1) {
		has = append(has, line[1])
	}
	has = append(has, "no") // which is as nb
	slices.Sort(has)
	if known != strings.Join(has, " ") {
		t.Errorf("the script asks for the languages %s, and the edge has %q", known, has)
	}
	if EventScript(EventOptions{}); string(EventScript(options)) != got {
		t.Error("the script of another site has changed this one's, want each site to have its own")
	}
}

// A page that names the version and the integrity gets exactly this script.
func TestVersionAndIntegrity(t *testing.T) {
	if got := Version(); !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(got) {
		t.Errorf("version %q", got)
	}
	if got := Integrity(); !regexp.MustCompile(`^sha384-[A-Za-z0-9+/]{64}$`).MatchString(got) {
		t.Errorf("integrity %q", got)
	}
	sum := sha256.Sum256(script)
	if Version() != hex.EncodeToString(sum[:8]) {
		t.Errorf("Version: got %s, want %s", Version(), hex.EncodeToString(sum[:8]))
	}
	version, integrity := Version(), Integrity()
	script := Script()
	script[0]++ // a copy
	if Version() != version || Integrity() != integrity {
		t.Errorf("a caller has changed the script: got version %s, integrity %s, want %s, %s", Version(), Integrity(), version, integrity)
	}
}
