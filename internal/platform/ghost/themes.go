package ghost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// themePath matches where, behind the path of its admin, Ghost takes themes and
// removes them: in any case, with slashes doubled, with or without one at the
// end, and under the names of older versions of its API.
var themePath = regexp.MustCompile(`(?i)^/+api/+` + version + `admin/+themes/+([^/]+)/*$`)

// maxThemePath bounds the paths that are matched, in bytes. Node.js, which Ghost
// runs on, takes 16 KiB of headers with the path among them.
const maxThemePath = 16 << 10

func (*visitorClient) ChangesTheme(method, path string) (platform.ThemeChange, bool) {
	if method != http.MethodPost && method != http.MethodDelete || len(path) > maxThemePath || !mayBeTheme(path) {
		return platform.ThemeChange{}, false
	}
	match := themePath.FindStringSubmatch(path)
	switch {
	case match == nil:
		return platform.ThemeChange{}, false
	case method == http.MethodDelete:
		return platform.ThemeChange{Deleted: match[1]}, true
	}
	return platform.ThemeChange{Field: "file"}, strings.EqualFold(match[1], "upload")
}

// mayBeTheme saves most requests the pattern, as mayBeBulk does.
func mayBeTheme(path string) bool { return strings.Contains(strings.ToLower(path), "/themes/") }

// themeName is how Ghost names themes: after the zip, with what is not one of
// these replaced.
var themeName = regexp.MustCompile(`^[A-Za-z0-9_@.-]{1,200}$`)

func checkTheme(name string) error {
	if !themeName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("%q: write the theme's name as Ghost's settings show it, such as nightly", name)
	}
	if name, isFile := strings.CutSuffix(name, ".zip"); isFile {
		return fmt.Errorf("%q is the file of a theme: write the theme's name as Ghost's settings show it, such as %s", name+".zip", name)
	}
	return nil
}

func (*visitorClient) ReadUploaded(response []byte) (string, error) {
	var body struct {
		Themes []struct {
			Name string `json:"name"`
		} `json:"themes"`
	}
	if err := decode(response, &body); err != nil {
		return "", fmt.Errorf("reading Ghost's response: %w", err)
	}
	if len(body.Themes) != 1 || body.Themes[0].Name == "" {
		return "", errors.New("reading Ghost's response: it has no theme")
	}
	return body.Themes[0].Name, nil
}

// Ghost tells integrations of no themes, so
// it is asked with the visitor's session, as it is about them.
func (c *visitorClient) Installed(ctx context.Context, visitor platform.Visitor) ([]platform.InstalledTheme, error) {
	response, err := c.askAs(ctx, "/themes/", visitor)
	if err != nil {
		return nil, err
	}
	var body struct {
		Themes []struct {
			Name   string `json:"name"`
			Active bool   `json:"active"`
		} `json:"themes"`
	}
	if err := decode(response, &body); err != nil {
		return nil, fmt.Errorf("reading Ghost's themes: %w", err)
	}
	list := make([]platform.InstalledTheme, 0, len(body.Themes))
	for _, theme := range body.Themes {
		list = append(list, platform.InstalledTheme{Name: theme.Name, IsActive: theme.Active})
	}
	return list, nil
}

// The findings are the last key of Ghost's response,
// and the notice is the first of the theme's warnings.
func (*visitorClient) AddFindings(response, findings []byte, notice *platform.UploadNotice) []byte {
	if notice != nil {
		response = addWarning(response, warningOf(notice))
	}
	object := bytes.TrimSuffix(bytes.TrimSpace(response), []byte("}"))
	return fmt.Appendf(nil, `%s,"_errors":%s}`, object, findings)
}
