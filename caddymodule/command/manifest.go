package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/dustin/go-humanize/english"
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

// validation is one theme's, as the command line asks for it.
type validation struct {
	name     string // of a folder, a zip or a file
	fileName string // of the manifest, in a folder or a zip
	isStrict bool
	write    func(io.Writer, manifestReport) error
	out      io.Writer
	notes    io.Writer // what is no finding
}

// run validates the manifest, prints the findings and returns how many there are. An
// error says why nothing was validated.
func (v validation) run() (found int, err error) {
	report, err := checkTheme(v.name, v.fileName)
	if err == nil && v.isStrict {
		err = v.addStrict(&report)
	}
	if err != nil {
		return 0, err
	}
	if err := v.write(v.out, report); err != nil {
		return 0, fmt.Errorf("printing the findings: %w", err)
	}
	return len(report.findings) + len(report.strict), nil
}

// addStrict adds the findings of --strict. Those about files of the theme come last.
func (v validation) addStrict(report *manifestReport) error {
	report.isStrict, report.strict = true, manifest.UnknownKeys(report.text)
	files, err := themes.Templates(v.name, v.fileName)
	switch {
	case errors.Is(err, themes.ErrNoTheme):
		fmt.Fprintf(v.notes, "Templates are not checked: %s\n", err)
		return nil
	case err != nil:
		return fmt.Errorf("the templates of %s cannot be read: %w", v.name, err)
	}
	report.strict = append(report.strict, themes.CheckTemplates(report.text, files)...)
	slices.SortStableFunc(report.strict, func(a, b manifest.Finding) int {
		return cmp.Or(cmp.Compare(uint(a.Line-1), uint(b.Line-1)), cmp.Compare(a.Column, b.Column))
	})
	return nil
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

	// strict are the findings of --strict, which are apart from those above.
	isStrict bool
	strict   []manifest.Finding
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
		parts = append(parts, english.Plural(counts[s], string(s), ""))
	}
	return english.Plural(len(findings), "finding", "") + ": " + strings.Join(parts, ", ")
}
