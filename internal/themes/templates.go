package themes

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file holds the templates that a manifest names against those of its theme.

// ErrNoTheme says that a manifest is in no theme, so there are no templates.
var ErrNoTheme = errors.New("the manifest is in no theme: there is no index.hbs and no package.json beside it")

// maxTexts bounds how much of a theme's templates is read, in bytes.
const maxTexts = 16 << 20

// Files are the files .hbs of a theme, partials among them.
type Files struct {
	Names []string // from the theme's root on, with slashes

	texts bytes.Buffer // of all, in lower case
	isCut bool         // not all could be read
}

// add adds a file.
func (f *Files) add(name string, open func() (io.ReadCloser, error)) error {
	f.Names = append(f.Names, name)
	file, err := open()
	if errors.Is(err, fs.ErrNotExist) { // a link to nothing
		f.isCut = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxTexts+1-int64(f.texts.Len())))
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	f.texts.Write(bytes.ToLower(text))
	f.texts.WriteByte('\n')
	f.isCut = f.isCut || f.texts.Len() > maxTexts
	return nil
}

// Sum differs if any file is another.
func (f *Files) Sum() [sha256.Size]byte {
	return sha256.Sum256(slices.Concat([]byte(strings.Join(f.Names, "\n")), f.texts.Bytes()))
}

// Templates reads the files .hbs of the theme whose manifest [Open] reads. fileName is what the manifest is called in a folder or a
// zip; a manifest of another name has the theme of its folder. Folders that Ghost ignores,
// such as node_modules, are left out.
//
// Errors: ErrNoTheme, and those of Open.
func Templates(name, fileName string) (*Files, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return templatesIn(os.DirFS(name))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	start := make([]byte, 4)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if isZip(name, start[:n]) {
		return zippedTemplates(file, info.Size(), fileName)
	}
	folder := filepath.Dir(name)
	for _, sign := range []string{"index.hbs", "package.json"} {
		if _, err := os.Stat(filepath.Join(folder, sign)); err == nil {
			return templatesIn(os.DirFS(folder))
		}
	}
	return nil, ErrNoTheme
}

// notRead are the files and folders that Ghost leaves out of a theme (read-theme.js of
// gscan), wherever they are.
var notRead = []string{"node_modules", "bower_components", ".git", ".svn", ".yarn-cache"}

func templatesIn(theme fs.FS) (*Files, error) {
	files := new(Files)
	seen := 0
	err := fs.WalkDir(theme, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(notRead, entry.Name()):
			return fs.SkipDir
		case !entry.IsDir() && isTemplate(name):
			if err := files.add(name, func() (io.ReadCloser, error) { return theme.Open(name) }); err != nil {
				return err
			}
		}
		if seen++; seen > MaxEntries {
			return fmt.Errorf("the theme has more than %d files and folders; name a folder that holds the theme alone", MaxEntries)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}

// zippedTemplates reads the templates in a zip of size bytes, of the theme that the
// manifest is in. Errors are those of [ReadZip].
func zippedTemplates(r io.ReaderAt, size int64, fileName string) (*Files, error) {
	entries, found, err := openTheme(&limitedReaderAt{r: r, left: maxDirectory + 2*maxTail + maxTexts}, size, fileName)
	if err != nil {
		return nil, err
	}
	root := ""
	if folder := path.Dir(cleanName(found.Name)); folder != "." {
		root = folder + "/"
	}
	files := new(Files)
	for _, entry := range entries {
		name, inside := strings.CutPrefix(cleanName(entry.Name), root)
		isRead := !slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(part string) bool { return slices.Contains(notRead, part) })
		if inside && isRead && isTemplate(name) {
			if err := files.add(name, entry.Open); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// cleanName is the name of a zip's entry with slashes. Ghost, too, takes both kinds.
func cleanName(name string) string { return path.Clean(strings.ReplaceAll(name, `\`, "/")) }

const suffix = ".hbs"

// isTemplate reports whether the name of a file is that of a template, or nearly: Ghost
// reads none with another case.
func isTemplate(name string) bool { return strings.EqualFold(path.Ext(name), suffix) }

// rendered is the name by which Ghost renders a file of a theme, and whether it does:
// partials and assets are no templates (extractTemplates of gscan).
func rendered(file string) (string, bool) {
	name, ok := strings.CutSuffix(file, suffix)
	return name, ok && !isPart(file)
}

// isPart reports whether a file is a partial or an asset.
func isPart(file string) bool {
	return strings.HasPrefix(file, "partials/") || strings.HasPrefix(file, "assets/")
}

// customPrefix starts the name of a template that Ghost offers in the settings of each
// post, if it is in the theme's root (extractCustomTemplates of gscan).
const customPrefix = "custom-"

// isOffered reports whether Ghost offers a template in the settings of a post.
func isOffered(name string) bool {
	return strings.HasPrefix(name, customPrefix) && !strings.Contains(name, "/")
}

// maxSuggested bounds how many templates are compared with a name that the theme lacks.
const maxSuggested = 50

// CheckTemplates warns of each template of an event type in a manifest that the theme
// lacks, or that Ghost does not offer in the settings of a post, in the order of the file.
// After these come the other files that look like custom templates and are not offered;
// such a finding has the file as its Field, and no line. files are the names of [Files].
func CheckTemplates(text []byte, files []string) []manifest.Finding {
	t := newTheme(files)
	said := make(map[string]bool) // of the files
	var findings []manifest.Finding
	for _, p := range manifest.PostTemplates(text) {
		problem, file := t.problemOf(p.Name)
		said[file] = true
		if problem != "" {
			findings = append(findings, manifest.Finding{Field: p.Field, Message: problem, Severity: manifest.Warning, Line: p.Line, Column: p.Column})
		}
	}
	for _, file := range files {
		if problem := misplaced(file); problem != "" && !said[file] {
			findings = append(findings, manifest.Finding{Field: file, Message: problem, Severity: manifest.Warning})
		}
	}
	return findings
}

// CheckSlots warns of each slot whose tag none of the theme's templates has: what is put into the slot is nowhere then.
// Nothing is said of templates that are too long to be read whole.
func CheckSlots(text []byte, files *Files) []manifest.Finding {
	if files.isCut {
		return nil
	}
	var findings []manifest.Finding
	for _, slot := range manifest.SlotTags(text) {
		identity := manifest.TagIdentity(slot.Name)
		if strings.ContainsFunc(identity, func(r rune) bool { return r > unicode.MaxASCII }) { // Ghost alone knows its slug
			continue
		}
		if bytes.Contains(files.texts.Bytes(), []byte(identity)) || bytes.Contains(files.texts.Bytes(), bytes.ToLower([]byte(slot.Name))) {
			continue
		}
		findings = append(findings, manifest.Finding{
			Field: slot.Field, Severity: manifest.Warning, Line: slot.Line, Column: slot.Column,
			Message: fmt.Sprintf("no template of the theme has the tag %s; unless one puts it together from parts, readers do not see what editors put into the slot: ask for %s in a template, or take the slot out",
				manifest.Quote(slot.Name), manifest.Quote("tag:"+identity)),
		})
	}
	return findings
}

// theme are the templates of a theme.
type theme struct {
	rendered map[string]string // by name: the file
	similar  map[string]string // by name in lower case, without its folder: the file
	offered  []string          // some names
}

func newTheme(files []string) theme {
	t := theme{rendered: make(map[string]string), similar: make(map[string]string)}
	for _, file := range files {
		if isPart(file) {
			continue
		}
		base := strings.ToLower(path.Base(file))
		if _, taken := t.similar[base]; !taken || !strings.Contains(file, "/") { // one in the root is more likely
			t.similar[base] = file
		}
		name, ok := rendered(file)
		if !ok {
			continue
		}
		t.rendered[name] = file
		if isOffered(name) && len(t.offered) < maxSuggested {
			t.offered = append(t.offered, name)
		}
	}
	return t
}

// problemOf checks the template that an event type names. It is "" if nothing is wrong.
// file is the one that is probably meant, "" for none.
func (t theme) problemOf(name string) (problem, file string) {
	const renders = "so Ghost renders these events with `post.hbs`"
	if file, found := t.rendered[name]; found {
		if isOffered(name) {
			return "", file
		}
		return fmt.Sprintf("Ghost does not offer %s in the settings of a post; %s", manifest.Quote(file), renamed(file, name)), file
	}
	bare := strings.TrimSuffix(name, suffix)
	lacks := fmt.Sprintf("the theme has no %s in its root, %s; ", manifest.Quote(bare+suffix), renders)
	if _, found := t.rendered[bare]; found {
		return fmt.Sprintf("the template has `.hbs` at its end, %s; write %s", renders, manifest.Quote(bare)), bare + suffix
	}
	if file, found := t.similar[strings.ToLower(path.Base(bare))+suffix]; found {
		if template, ok := rendered(file); ok && isOffered(template) {
			return lacks + "write " + manifest.Quote(template), file
		}
		return fmt.Sprintf("%sit has %s: %s", lacks, manifest.Quote(file), renamed(file, name)), file
	}
	if near := manifest.Nearest(bare, t.offered); near != "" {
		return lacks + "did you mean " + manifest.Quote(near) + "?", ""
	}
	if isOffered(bare) && bare == name {
		return lacks + "add it", ""
	}
	offered := customName(bare + suffix)
	return fmt.Sprintf("%sadd %s, and write %s", lacks, manifest.Quote(offered+suffix), manifest.Quote(offered)), ""
}

// misplaced tells why Ghost does not offer a file that looks like a custom template, "" if
// it does.
func misplaced(file string) string {
	base := strings.ToLower(path.Base(file))
	if name, ok := rendered(file); ok && isOffered(name) || isPart(file) || !strings.HasPrefix(base, "custom-") && !strings.HasPrefix(base, "custom_") {
		return ""
	}
	return fmt.Sprintf("Ghost does not offer %s in the settings of a post; %s", manifest.Quote(file), renamed(file, customName(file)))
}

// renamed says what to do with a file for Ghost to offer it, and with the name of its
// template in the manifest, if that changes.
func renamed(file, template string) string {
	name := customName(file)
	to := "rename it " + manifest.Quote(name+suffix)
	if strings.Contains(file, "/") {
		to = "move it to " + manifest.Quote(name+suffix) + " in the theme's root"
	}
	if name != template {
		to += ", and write " + manifest.Quote(name)
	}
	return to
}

// customName is the name that a template would have if Ghost offered it.
func customName(file string) string {
	stem := strings.TrimSuffix(path.Base(file), path.Ext(file))
	for _, prefix := range []string{customPrefix, "custom_", "post-", "page-"} {
		if len(stem) > len(prefix) && strings.EqualFold(stem[:len(prefix)], prefix) {
			return customPrefix + stem[len(prefix):]
		}
	}
	return customPrefix + stem
}
