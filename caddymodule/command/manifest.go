package command

import (
	"errors"
	"fmt"
	"io"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// exitUnread is the exit code if there was nothing to validate. That of findings
// is 1, which Caddy gives to any error.
const exitUnread = 2

func manifestCommand() *cobra.Command {
	root := &cobra.Command{Use: "manifest", Short: "Works on the manifest of a theme"}
	validate := &cobra.Command{
		Use: "validate <folder|zip|file>", Short: "Says what is wrong in a theme's manifest",
		Long: `
Reads the manifest of a theme, in the root of its folder or of its zip, or a
manifest of any name, and prints each problem in it.

The exit code is 0 without any, 1 with some, and 2 if there is nothing to read.
`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return unread(cmd, errors.New("name one theme: its folder, its zip, or a manifest file"))
			}
			return nil
		},
	}
	validate.SetFlagErrorFunc(unread)
	format := validate.Flags().String("format", "text", "How findings are printed: text, json, or github for annotations of a workflow")
	service := validate.Flags().String("name", "lychgate", "Name of the service: the file is called <name>-manifest.yaml")
	isStrict := validate.Flags().Bool("strict", false, "Also prints unknown keys, and templates that the theme lacks or Ghost does not offer")
	isWatching := validate.Flags().Bool("watch", false, "Validates again whenever the theme changes, until Ctrl-C")
	validate.RunE = func(cmd *cobra.Command, args []string) error {
		v := validation{name: args[0], isStrict: *isStrict, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr()}
		var known bool
		var err error
		if v.write, known = manifestFormats[*format]; !known {
			return unread(cmd, fmt.Errorf("--format %q: write text, json or github", *format))
		}
		if *isWatching && *format == "github" {
			return unread(cmd, errors.New("--watch prints for people and programs: write --format text or json"))
		}
		if v.fileName, err = themes.FileName(*service); err != nil {
			return unread(cmd, err)
		}
		if *isWatching {
			if err := v.watch(cmd.Context(), *format == "text"); err != nil {
				return unread(cmd, err)
			}
			return nil
		}
		found, err := v.run()
		if err != nil {
			return unread(cmd, err)
		}
		if found > 0 {
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			return errors.New(themes.Status(found))
		}
		return nil
	}
	group(root, validate)
	return root
}

// manifestFormats are the values of --format.
var manifestFormats = map[string]func(io.Writer, manifestReport) error{
	"text": printManifestText, "json": printManifestJSON, "github": printManifestAnnotations,
}

// unread prints why nothing was validated, and makes Caddy exit with exitUnread.
func unread(cmd *cobra.Command, err error) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "Error: %s\n", printable(err.Error()))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	// Caddy's type of error that carries an exit code is made only by this.
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return exitUnread, nil })(cmd, nil)
}
