package command

import (
	"errors"
	"fmt"
	"html"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/handlers/inbox"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

func buttonCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "inbox-button", Short: "Prints the script tag of the inbox button, and the script itself", Args: cobra.NoArgs,
		Long: `
Prints the tag with which a page loads the inbox button of this Lychgate, under
its version, so that browsers keep it for a year, and with its integrity hash, so
that they run no other. Another version of Lychgate may have another script: print
the tag again then. A tag without both always works, and is kept for an hour.

With --script it prints the script, to be copied into a theme.
`,
	}
	lookup := command.Flags().String("lookup", "/ghost/inbox-provider", "Where inbox_provider answers: its path, or a URL such as https://news.example.com/ghost/inbox-provider")
	sender := command.Flags().String("sender", "", "Address that sign-in messages come from, which the webmail is searched for")
	script := command.Flags().Bool("script", false, "Print the script")
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		out := cmd.OutOrStdout()
		if *script {
			if cmd.Flags().NFlag() > 1 {
				return errors.New("--script prints the file alone: write data-sender and data-endpoint on the tag that loads it")
			}
			_, err := out.Write(web.Script())
			return err
		}
		u, err := url.Parse(*lookup)
		local := err == nil && u.Scheme == "" && u.Host == "" && config.CheckLookupPath(u.Path) == nil
		if err != nil || !local && (u.Scheme == "" || config.CheckRejectTo(*lookup) != nil) || strings.Contains(*lookup, " ") || u.RawQuery != "" || u.Fragment != "" || config.CheckLookupPath(u.Path) != nil {
			return fmt.Errorf("--lookup %q: write the path of inbox_provider, such as /ghost/inbox-provider, or a URL with it", *lookup)
		}
		if *sender != "" && !addressOnly.MatchString(*sender) {
			return errors.New("--sender: write the address alone, such as noreply@news.example.com")
		}
		attributes := ""
		if path.Base(u.Path) != "inbox-provider" { // which the script takes it to be
			attributes += " data-endpoint=\"" + html.EscapeString(*lookup) + "\""
		}
		if *sender != "" {
			attributes += " data-sender=\"" + html.EscapeString(*sender) + "\""
		}
		u.Path = path.Dir(u.Path) + inbox.ButtonPath
		_, err = fmt.Fprintf(out, "<script src=\"%s?v=%s\"\n\tintegrity=\"%s\" crossorigin=\"anonymous\" data-forms%s defer></script>\n",
			html.EscapeString(u.String()), web.Version(), web.Integrity(), attributes)
		return err
	}
	return command
}

var addressOnly = regexp.MustCompile(`^[^\s<>"@]+@[^\s<>"@]+$`)
