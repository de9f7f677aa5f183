package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// A tenant whose sites are as large as they may be cannot have an edge hold all of them at once: a change of many is refused
// before they are read, and one of few is made.
func TestChangeOfManyLargeSites(t *testing.T) {
	const number, themes = 45, 100
	editor := &config.Editor{Config: new(config.Config), Store: sealedStore(t)}
	large := make(map[string]*config.Theme)
	for i := range themes {
		large[fmt.Sprintf("theme%d", i)] = &config.Theme{Repository: &config.Repository{URL: "https://git.example.com/" + strings.Repeat("x", 960)}}
	}
	all, few := make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	for i := range number {
		name := fmt.Sprintf("site%02d", i)
		site := dailyOnGhost()
		site.Name, site.Hosts, site.Themes = name, []string{name + ".example.com"}, large
		if _, err := editor.Add(t.Context(), site); err != nil {
			t.Fatalf("adding %s: %v", name, err)
		}
		if all[name] = json.RawMessage(`{"registration":false}`); i < number/2 {
			few[name] = all[name]
		}
	}
	err := editor.Patch(t.Context(), all, false)
	if _, ok := errors.AsType[*config.InvalidSiteError](err); !ok || !strings.HasSuffix(err.Error(), "change fewer sites at once") {
		t.Errorf("changing %d sites: got error %v", len(all), err)
	}
	if err := editor.Patch(t.Context(), few, false); err != nil {
		t.Errorf("changing %d sites: %v", len(few), err)
	}
}
