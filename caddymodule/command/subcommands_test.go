package command_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/caddytest"
)

// A typo in a script ends it, and says what to write.
func TestUnknownCommands(t *testing.T) {
	caddy := caddytest.Build(t)
	for args, want := range map[string]string{
		"lychgate foo":                             "Error: there is no command caddy lychgate foo: write caddy lychgate inbox-button, or integration, or manifest, or members\n",
		"lychgate manifets validate .":             "Error: there is no command caddy lychgate manifets: write caddy lychgate manifest\n",
		"lychgate manifest check .":                "Error: there is no command caddy lychgate manifest check: write caddy lychgate manifest validate\n",
		"lychgate integration ad events":           "Error: there is no command caddy lychgate integration ad: write caddy lychgate integration add\n",
		"lychgate integration add":                 "Error: name the integration: caddy lychgate integration add <name> [flags]\n",
		"lychgate integration rotate a b":          "Error: name the integration: caddy lychgate integration rotate <name> [flags]\n",
		"lychgate members show --config Caddyfile": "Error: name the member: caddy lychgate members show <guid> [flags]\n",
	} {
		output, err := exec.Command(caddy, strings.Fields(args)...).CombinedOutput()
		if diff := cmp.Diff(want, string(output)); diff != "" || err == nil {
			t.Errorf("%s: %s, %v", args, diff, err)
		}
	}
	for _, args := range []string{"lychgate", "lychgate manifest", "lychgate integration --help"} {
		output, err := exec.Command(caddy, strings.Fields(args)...).Output()
		if !strings.Contains(string(output), "Available Commands:") || err != nil {
			t.Errorf("%s: %v, %s", args, err, output)
		}
	}
}
