package caddymodule_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// However a body is made, what is read of it takes little memory: values of JSON may take fifty times its size.
func TestHostileBodies(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(sqliteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + noGhost + `}`)
	const sites, daily, kib = "/lychgate/sites", "/lychgate/sites/daily", 1 << 10
	fill := func(begin, part, end string, size int) string {
		n := (size - len(begin) - len(end)) / (len(part) + 1)
		return begin + strings.Repeat(part+",", n) + part + end
	}
	numbered := func(begin, form, end string, size int) string { // with other keys each
		var text strings.Builder
		text.WriteString(begin)
		for i := 0; text.Len() < size-100; i++ {
			fmt.Fprintf(&text, form+",", i)
		}
		return strings.TrimSuffix(text.String(), ",") + end
	}
	for _, body := range []struct{ name, method, path, body string }{
		{"an unknown list in a change", "PATCH", daily, fill(`{"x":[`, "{}", "]}", 1024*kib)},
		{"objects for hosts in a change", "PATCH", daily, fill(`{"hosts":[`, "{}", "]}", 1024*kib)},
		{"empty hosts in a change", "PATCH", daily, fill(`{"hosts":[`, `""`, "]}", 1024*kib)},
		{"a list in the platform of a change", "PATCH", daily, fill(`{"platform":{"kind":[`, "[]", "]}}", 1024*kib)},
		{"unknown fields in a change", "PATCH", daily, numbered("{", `"%x":0`, "}", 1024*kib)},
		{"themes in a change", "PATCH", daily, numbered(`{"themes":{`, `"%x":{}`, "}}", 1024*kib)},
		{"themes that go", "PATCH", daily, numbered(`{"themes":{`, `"%x":null`, "}}", 1024*kib)},
		{"an unknown list in changes", "PATCH", sites, fill(`{"daily":{"x":[`, "{}", "]}}", 4096*kib)},
		{"changes of many names", "PATCH", sites, numbered("{", `"%x":0`, "}", 4096*kib)},
		{"changes with many themes", "PATCH", sites, numbered(`{"daily":{"themes":{`, `"%x":{}`, "}}}", 1024*kib)},
		{"an unknown list in a new site", "POST", sites, fill(`{"x":[`, "{}", "]}", 1024*kib)},
		{"a list of objects", "POST", sites, fill("[", "{}", "]", 4096*kib)},
		{"a list of lists", "POST", sites, fill("[", "[]", "]", 4096*kib)},
		{"a list of a large one", "POST", sites, fill(`[{"x":[`, "{}", "]}]", 4096*kib)},
		{"a list of sites with many themes", "POST", sites, "[" + strings.Repeat(numbered(`{"name":"a","themes":{`, `"%x":{}`, "}},", 1023*kib), 3) + "{}]"},
		{"themes of a new site", "POST", sites, numbered(`{"name":"a","hosts":["a.example.com"],`+noGhost+`,"themes":{`, `"%x":{}`, "}}", 1024*kib)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := a.send(body.method, body.path, body.body)
		runtime.ReadMemStats(&after)
		took := int(after.TotalAlloc-before.TotalAlloc) / kib / kib
		t.Logf("%s: %d MiB", body.name, took)
		if err != nil || got.Status != 400 {
			t.Errorf("%s: got %.200v, %v, want it to be refused", body.name, got, err)
		}
		if took > 100 {
			t.Errorf("%s, %d bytes: %d MiB are allocated, want at most 100", body.name, len(body.body), took)
		}
	}
}
