package config_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// texts finds the texts of a JSON value, by where they are, and the lists.
func texts(value any, path string, found map[string]func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if _, ok := inner.(string); ok {
				found[path+"."+key] = func(text string) { value[key] = text }
			}
			texts(inner, path+"."+key, found)
		}
	case []any:
		for i, inner := range value {
			if _, ok := inner.(string); ok {
				found[fmt.Sprintf("%s[%d]", path, i)] = func(text string) { value[i] = text }
			}
			texts(inner, path, found)
		}
	}
}

// Whoever may change one site in the store cannot keep the edge busy with a long value: each that a site has is tried.
func TestSitesAreReadInLinearTime(t *testing.T) {
	const whole = `{"name": "daily", "hosts": ["news.example.com"], "labels": ["acme"], "platform": {"kind": "ghost", "url": "https://ghost.example.com",
		"admin_url": "https://admin.example.com", "admin_key": "` + adminKey + `", "webhooks": "https://news.example.com", "reconcile": "6h"},
		"themes": {"nightly": {"repository": {"url": "https://git.example.com/a/b.git", "branch": "main", "token": "t", "user": "u"}}}}`
	read := func(text []byte) error {
		var site config.NamedSite
		err := json.Unmarshal(text, &site)
		if err == nil {
			_, err = (&config.Editor{Config: new(config.Config)}).Prepare(site)
		}
		return err
	}
	if err := read([]byte(whole)); err != nil {
		t.Fatalf("reading a site with each value: %v", err)
	}
	places := make(map[string]func(string))
	var plain map[string]any
	if err := json.Unmarshal([]byte(whole), &plain); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	texts(plain, "", places)
	for _, place := range slices.Sorted(maps.Keys(places)) {
		for _, form := range []string{"…", "https://….example.com/", "https://example.com/…", "…h"} {
			for _, part := range []string{"漢", "a.", "1", "-", "[", "%", "{a"} {
				t.Run(fmt.Sprint(place, form, part), func(t *testing.T) {
					lineartest.Check(t, 64<<10, func(size int) []byte {
						var value map[string]any
						if err := json.Unmarshal([]byte(whole), &value); err != nil {
							t.Fatalf("json.Unmarshal: %v", err)
						}
						found := make(map[string]func(string))
						texts(value, "", found)
						found[place](strings.Replace(form, "…", lineartest.Repeat(part, size), 1))
						text, err := json.Marshal(value)
						if err != nil {
							t.Fatalf("json.Marshal: %v", err)
						}
						return text
					}, func(text []byte) { _ = read(text) })
				})
			}
		}
	}
}
