package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/themes"
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
	validate.RunE = func(cmd *cobra.Command, args []string) error {
		write, known := manifestFormats[*format]
		if !known {
			return unread(cmd, fmt.Errorf("--format %q: write text, json or github", *format))
		}
		fileName, err := themes.FileName(*service)
		if err != nil {
			return unread(cmd, err)
		}
		report, err := checkTheme(args[0], fileName)
		if err != nil {
			return unread(cmd, err)
		}
		if err := write(cmd.OutOrStdout(), report); err != nil {
			return unread(cmd, fmt.Errorf("printing the findings: %w", err))
		}
		if len(report.findings) > 0 {
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			return errors.New(themes.Status(len(report.findings)))
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

// manifestReport is what came out of a theme's manifest.
type manifestReport struct {
	path     string // of the file, for people; in a zip, behind that of the zip
	text     []byte // nil if it is too large
	manifest *manifest.Manifest
	findings []manifest.Finding
}

// checkTheme validates the manifest of a theme.
func checkTheme(name, fileName string) (manifestReport, error) {
	file, err := themes.Open(name, fileName)
	var tooLarge *themes.TooLargeError
	var archive *themes.ArchiveError
	switch {
	case errors.As(err, &tooLarge):
		return manifestReport{path: tooLarge.Path, findings: []manifest.Finding{tooLarge.Finding()}}, nil
	case errors.Is(err, themes.ErrNoManifest):
		return manifestReport{}, fmt.Errorf("%s has no %s: put one next to package.json, or say with --name how it is called", name, fileName)
	case errors.Is(err, fs.ErrNotExist):
		return manifestReport{}, fmt.Errorf("there is no %s: name a theme's folder, its zip, or a manifest file", name)
	case errors.As(err, &archive):
		return manifestReport{}, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return manifestReport{}, fmt.Errorf("the theme cannot be read: %w", err)
	}
	result := manifest.Parse(file.Text)
	return manifestReport{path: file.Path, text: file.Text, manifest: result.Manifest, findings: result.Findings}, nil
}

// onTerminal reports whether w is a terminal that shows colours, and its user
// wants some (https://no-color.org).
func onTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// countFindings is the last line of a text: "3 findings: 1 error, 2 warnings".
func countFindings(findings []manifest.Finding) string {
	if len(findings) == 0 {
		return themes.Status(0)
	}
	counts := make(map[manifest.Severity]int)
	for _, f := range findings {
		counts[f.Severity]++
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, counted(counts[s], string(s)))
	}
	return counted(len(findings), "finding") + ": " + strings.Join(parts, ", ")
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
