package command_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// A typo in a script ends it, and says what to write.
func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	caddy := caddytest.Build(t)
	for args, want := range map[string]string{
		"lychgate foo":                             "Error: there is no command caddy lychgate foo: write caddy lychgate backup, or doctor, or downgrade, or inbox-button, or integration, or manifest, or members, or secret, or site, or theme, or version\n",
		"lychgate manifets validate .":             "Error: there is no command caddy lychgate manifets: write caddy lychgate manifest\n",
		"lychgate manifest check .":                "Error: there is no command caddy lychgate manifest check: write caddy lychgate manifest validate\n",
		"lychgate integration ad events":           "Error: there is no command caddy lychgate integration ad: write caddy lychgate integration add\n",
		"lychgate integration add":                 "Error: name the integration: caddy lychgate integration add <name> [flags]\n",
		"lychgate integration rotate a b":          "Error: name the integration: caddy lychgate integration rotate <name> [flags]\n",
		"lychgate members show --config Caddyfile": "Error: name the member: caddy lychgate members show <guid> [flags]\n",
	} {
		output, err := exec.Command(caddy, strings.Fields(args)...).CombinedOutput()
		if diff := cmp.Diff(want, string(output)); diff != "" || err == nil {
			t.Errorf("%s: output: error %v, want one (-want +got):\n%s", args, err, diff)
		}
	}
	for _, args := range []string{"lychgate", "lychgate manifest", "lychgate integration --help"} {
		output, err := exec.Command(caddy, strings.Fields(args)...).Output()
		if !strings.Contains(string(output), "Available Commands:") || err != nil {
			t.Errorf(`%s: got %v, %s, want output with "Available Commands:", no error`, args, err, output)
		}
	}
}

// The help says what Lychgate is to somebody who has not heard of it.
func TestHelpSaysWhatLychgateIs(t *testing.T) {
	want := `
Lychgate is a Caddy plugin that stands in front of Ghost publications. It looks
up the webmail providers of readers, gives a CRM an API for members, reads theme
manifests, gives staff a desk beside Ghost's admin, and shows readers the events
that staff publish there.

site, theme, integration and members work on the store that the configuration
names, whether or not Caddy runs. Nothing needs a reload: a change of a site is live
within two seconds, and all else at once.

secret seals the keys in the store anew, when the configuration's secret changed.
backup copies the store, and downgrade takes it back for an older Lychgate.

doctor checks what the configuration needs of the world, and says what to fix.

manifest, inbox-button and version need no configuration.

Usage:
  caddy lychgate  [flags]
  caddy lychgate [command]

Available Commands:
  backup       Copies the store to a file, while Caddy runs or not
  doctor       Checks what a configuration needs of the world, and says what to fix
  downgrade    Takes tables of the store back for an older Lychgate
  inbox-button Prints the script tag of the inbox button, and the script itself
  integration  Manages the keys of the members API
  manifest     Works on the manifest of a theme
  members      Manages the members that Lychgate keeps
  secret       Manages the secret that seals keys in the store
  site         Manages the sites in the store
  theme        Manages the theme repositories of sites in the store
  version      Prints the versions of Lychgate, Caddy and Go

Flags:
  -h, --help   help for lychgate

Use "caddy lychgate [command] --help" for more information about a command.

Full documentation is available at:
https://github.com/lychgate/caddy-lychgate/tree/main/docs
`
	if diff := cmp.Diff(ran{want, "", 0}, lychgate(t, t.TempDir(), "--help")); diff != "" {
		t.Errorf("lychgate (-want +got):\n%s", diff)
	}
}
