// Package command is the command line: caddy lychgate and all below it, and what
// it prints.
package command

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "lychgate",
		Short: "Manages and backs up what Lychgate keeps, and checks and helps themes",
		Long: `
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
`,
		CobraFunc: func(cmd *cobra.Command) {
			group(cmd, siteCommand(), themeCommand(), integrationCommand(), membersCommand(), secretCommand(), backupCommand(), downgradeCommand(), doctorCommand(), manifestCommand(), buttonCommand(), versionCommand())
			cmd.SetHelpTemplate(cmd.HelpTemplate() + "\nFull documentation is available at:\n" + documentation + "\n")
		},
	})
}

// documentation is where the pages of docs are.
const documentation = "https://github.com/lychgate/caddy-lychgate/tree/main/docs"
