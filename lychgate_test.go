package lychgate_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	_ "github.com/lychgate/caddy-lychgate"
)

// testOnly are the modules that nothing but tests imports: an operator's build
// leaves them out.
var testOnly = map[string]bool{
	"github.com/google/go-cmp": true,
	"go.uber.org/goleak":       true,
	"pgregory.net/rapid":       true,
}

// Anyone who builds by xcaddy.json gets what the tests ran with.
func TestXcaddyJSON(t *testing.T) {
	type module struct {
		Module  string `json:"module"`
		Version string `json:"version"`
	}
	type build struct {
		CaddyVersion string   `json:"caddy_version"`
		Dependencies []module `json:"dependencies"`
	}
	text, err := os.ReadFile("xcaddy.json")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	var got build
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}

	text, err = exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatalf("exec.Command(\"go\", \"mod\", \"edit\", \"-json\").Output: %v", err)
	}
	var mod struct {
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	var want build
	for _, require := range mod.Require {
		switch {
		case require.Indirect, testOnly[require.Path]:
		case require.Path == "github.com/caddyserver/caddy/v2":
			want.CaddyVersion = require.Version
		default:
			want.Dependencies = append(want.Dependencies, module{require.Path, require.Version})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("xcaddy.json does not say what go.mod says: %s", diff)
	}
}

// Importing the root package is all that `xcaddy build --with` does.
func TestModulesAreRegistered(t *testing.T) {
	for _, id := range []string{"lychgate", "http.handlers.inbox_provider", "http.handlers.members_api", "http.handlers.theme_manifest", "http.handlers.staff_desk", "http.handlers.events_api", "tls.permission.lychgate", "http.reverse_proxy.upstreams.lychgate"} {
		if _, err := caddy.GetModule(id); err != nil {
			t.Errorf("caddy.GetModule: %v", err)
		}
	}
}
