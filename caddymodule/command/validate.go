package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

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
	report.isStrict, report.strict = true, manifest.StrictKeys(report.text)
	files, err := themes.Templates(v.name, v.fileName)
	switch {
	case errors.Is(err, themes.ErrNoTheme):
		fmt.Fprintf(v.notes, "Templates are not checked: %s\n", err)
		return nil
	case err != nil:
		return fmt.Errorf("the templates of %s cannot be read: %w", v.name, err)
	}
	report.strict = append(report.strict, themes.CheckTemplates(report.text, files.Names)...)
	report.strict = append(report.strict, themes.CheckSlots(report.text, files)...)
	slices.SortStableFunc(report.strict, func(a, b manifest.Finding) int {
		return cmp.Or(cmp.Compare(uint(a.Line-1), uint(b.Line-1)), cmp.Compare(a.Column, b.Column))
	})
	return nil
}

// checkTheme validates the manifest of a theme.
func checkTheme(name, fileName string) (manifestReport, error) {
	file, err := themes.Open(name, fileName)
	var tooLarge *themes.TooLargeError
	var misnamed *themes.MisnamedError
	var archive *themes.ArchiveError
	switch {
	case errors.As(err, &tooLarge):
		return manifestReport{path: tooLarge.Path, findings: []manifest.Finding{tooLarge.Finding()}}, nil
	case errors.As(err, &misnamed):
		return manifestReport{path: misnamed.Path, findings: []manifest.Finding{misnamed.Finding()}}, nil
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
