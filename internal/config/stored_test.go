package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

const adminKey = "65a1b2c3d4e5f60718293a4b:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"

// withThemes is a site with so many themes, whose tokens have so many bytes.
func withThemes(count, token int) *config.Site {
	s := &config.Site{
		Hosts:    []string{"news.example.com"},
		Platform: &config.Platform{Kind: "ghost", URL: "http://127.0.0.1:2368", AdminKey: adminKey},
		Themes:   make(map[string]*config.Theme),
	}
	for i := range count {
		s.Themes[fmt.Sprintf("t%d", i)] = &config.Theme{Repository: &config.Repository{
			URL: "https://git.example.com/t.git", Token: strings.Repeat("t", token),
		}}
	}
	return s
}

// Each edge reads all sites when it starts, so one site in the store must not take it minutes.
func TestStoredSiteIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		site *config.Site
		want string
	}{
		"as many themes as there may be":  {withThemes(100, 1000), ""},
		"one theme more":                  {withThemes(101, 0), "themes: a site in the store has at most 100"},
		"a token that nobody writes":      {withThemes(1, 128<<10), "its settings have 131291 bytes: a site in the store has at most 131072"},
		"tokens that nobody writes":       {withThemes(100, 2000), "its settings have 206249 bytes: a site in the store has at most 131072"},
		"themes that are no end of, both": {withThemes(90_000, 20), "themes: a site in the store has at most 100"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := test.site.ForStore("daily"); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("ForStore: got %q, want %q", got, test.want)
			}
		})
	}
}

// A site that was written when there was no bound is served.
func TestStoredSiteOfBefore(t *testing.T) {
	of := withThemes(150, 0)
	of.Hosts, of.Platform.AdminKey = nil, ""
	settings, err := json.Marshal(of)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	site, err := config.FromStore(sites.Site{Name: "daily", Hosts: []string{"news.example.com"}, Settings: settings})
	if err != nil || len(site.Themes) != 150 {
		t.Errorf("FromStore: got %v, want a site with 150 themes", err)
	}
}
