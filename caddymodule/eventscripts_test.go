package caddymodule_test

import (
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// Pages get the scripts with what the operator has set, in the language that the page asks for.
func TestScriptsOfEvents(t *testing.T) {
	for name, c := range map[string]struct{ option, fields string }{"usual": {"", "true"}, "without custom fields": {"custom_fields off", "false"}} {
		t.Run(name, func(t *testing.T) {
			config := edgetest.EventsConfig(edgetest.SQLiteStore(t), "http://127.0.0.1:1", edgetest.AnAdminKey, "60 1m\n"+c.option)
			e := edgetest.StartEdge(t, nil, config)
			for path, want := range map[string]string{
				"event.js":                `"fields":` + c.fields + `,"button":"","language":"en"}`,
				"event.js?de":             `"fields":` + c.fields + `,"button":"","language":"de"}`,
				"event.js?de-AT&x=1":      `"fields":` + c.fields + `,"button":"","language":"de"}`,
				"event.js?tlh":            `"fields":` + c.fields + `,"button":"","language":"en"}`,
				"events.js":               `{"events":"/ghost/lychgate/events",`,
				"event.d.ts?what=ever&de": "LychgateEventElement",
			} {
				got := e.Do("GET", "/ghost/lychgate/"+path, "Host", "localhost")
				if got.Status != 200 || !strings.Contains(got.Body, want) {
					t.Errorf("%s: got status %d, %.300q, want %s in it", path, got.Status, got.Body, want)
				}
			}
		})
	}
}
