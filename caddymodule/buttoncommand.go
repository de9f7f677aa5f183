package caddymodule

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/web"
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
	from := command.Flags().String("from", "/ghost", "Where the script is: the path that the lookup is in, or a URL such as https://news.example.com/ghost")
	sender := command.Flags().String("sender", "", "Address that sign-in messages come from, which the webmail is searched for")
	script := command.Flags().Bool("script", false, "Print the script")
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		out := cmd.OutOrStdout()
		if *script {
			_, err := out.Write(web.Script())
			return err
		}
		if u, err := url.Parse(*from); err != nil || u.Host == "" && !strings.HasPrefix(*from, "/") || strings.ContainsAny(*from, `"<>?# `) {
			return fmt.Errorf("--from %q: write the path that the lookup is in, such as /ghost, or a URL such as https://news.example.com/ghost", *from)
		}
		if strings.ContainsAny(*sender, "\"<>& \n") {
			return errors.New("--sender: write the address alone, such as noreply@news.example.com")
		}
		_, err := fmt.Fprintf(out, "<script src=\"%s%s?v=%s\"\n\tintegrity=\"%s\" crossorigin=\"anonymous\" data-forms%s defer></script>\n",
			strings.TrimSuffix(*from, "/"), handlers.ButtonPath, web.Version(), web.Integrity(), senderAttribute(*sender))
		return err
	}
	return command
}

func senderAttribute(sender string) string {
	if sender == "" {
		return ""
	}
	return fmt.Sprintf(" data-sender=%q", sender)
}
