package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/themes"
	"github.com/lychgate/caddy-lychgate/themes/git"
)

// Theme is a theme of a site.
type Theme struct {
	// Repository is where the theme is refreshed from. Required.
	Repository *Repository `json:"repository,omitempty"`
}

// Repository is a git repository, with the theme at its root.
type Repository struct {
	// URL is where the repository is cloned from, over HTTPS. Placeholders are
	// replaced.
	URL string `json:"url,omitempty"`

	// Branch is the branch that is read. Default: the repository's default.
	Branch string `json:"branch,omitempty"`

	// Token is a token that may read the repository. Placeholders such as
	// {env.THEME_TOKEN} are replaced. Default: none is sent.
	Token string `json:"token,omitempty"`

	// User is the user name that the token is sent with. Default:
	// `x-access-token`.
	User string `json:"user,omitempty"`
}

// checkThemeName checks that some kind of platform may have a theme of a name. Of which
// kind the site's is may be written further down.
func checkThemeName(name string) error {
	var wrong error
	for _, k := range kindsWith(platform.Kind.HasThemes) {
		err := k.CheckTheme(name)
		if err == nil {
			return nil
		}
		wrong = cmp.Or(wrong, err)
	}
	return &mistake{name: "theme", text: wrong.Error(), field: "themes"}
}

var errNoRepository = &mistake{
	text:  "needs a repository to be refreshed from, such as: repository https://git.example.com/acme/nightly.git",
	field: "repository", json: `needs a repository to be refreshed from, such as {"url": "https://git.example.com/acme/nightly.git"}`,
}

func (t *Theme) unmarshalCaddyfile(d *caddyfile.Dispenser, name string, in block) error {
	err := parseBlock(d, "theme "+name, in, map[string]option{
		"repository": {example: "repository https://git.example.com/acme/nightly.git", args: 1, block: func(args []string) error {
			t.Repository = &Repository{URL: args[0]}
			if err := checkEach("repository", args, checkRepository); err != nil {
				return d.WrapErr(inTheme(name, err))
			}
			return t.Repository.unmarshalCaddyfile(d, in.below(d, "repository"))
		}},
	})
	if err == nil && t.Repository == nil {
		err = d.WrapErr(inTheme(name, errNoRepository))
	}
	return err
}

func checkRepository(address string) error {
	if err := checkRepositoryURL(address); err != nil {
		return inBlock("repository", "repository", err)
	}
	return nil
}

// checkRepositoryURL checks an address, which is in no error: it may have
// credentials in it.
func checkRepositoryURL(address string) error {
	_, err := git.New(git.Config{URL: address})
	if err == nil {
		if u, parseErr := url.Parse(address); parseErr != nil || !platform.IsServer(u) {
			err = errors.New("the port is not one: write the address of a git repository, such as https://git.example.com/acme/nightly.git")
		} else if page := pageOfRepository.FindStringSubmatch(u.Host + u.Path); page != nil && !strings.HasSuffix(u.Path, ".git") {
			err = fmt.Errorf("this is a page about the repository: write the address that git clones from, such as %s://%s.git, and its branch in a block", u.Scheme, strings.TrimSuffix(page[1]+page[2], ".git"))
		}
	}
	if err != nil {
		return &mistake{text: err.Error(), field: "url"}
	}
	return nil
}

// pageOfRepository matches the host and path of a page that GitHub, Bitbucket, GitLab or
// Gitea have about a repository, such as that of a folder. GitLab and Gitea may be anywhere.
var pageOfRepository = regexp.MustCompile(`^((?:www\.)?(?:github\.com|bitbucket\.org)(?:/[^/]+){2})/.|` +
	`^([^/]+(?:/[^/]+){2,}?)/(?:-|src/(?:branch|commit|tag)|tree|blob)/.`)

func (r *Repository) unmarshalCaddyfile(d *caddyfile.Dispenser, in block) error {
	text := func(name, example string, value *string) option {
		return option{example: name + " " + example, args: 1, set: func(args []string) error {
			if *value = args[0]; *value == "" {
				return fmt.Errorf("%s is empty: write it as in: %s %s, or leave it out", name, name, example)
			}
			return checkPlaceholders(name, *value)
		}}
	}
	err := parseBlock(d, "repository", in, map[string]option{
		"branch": text("branch", "main", &r.Branch),
		"token":  text("token", "{env.THEME_TOKEN}", &r.Token),
		"user":   text("user", "x-access-token", &r.User),
	})
	if err == nil {
		if err = r.check(); err != nil {
			err = d.WrapErr(inBlock("repository", "", err))
		}
	}
	return err
}

var (
	fullReference = regexp.MustCompile(`^refs/(?:heads/)?`)
	notABranch    = regexp.MustCompile(`[[:cntrl:] ~^:?*\[\\]|\.\.|@\{|//|/$|^/|\.lock$`) // git-check-ref-format(1)
)

// check checks what can be without knowing the values of placeholders.
func (r *Repository) check() error {
	wrongBranch := func(write string) error {
		return &mistake{name: "branch", text: strconv.Quote(r.Branch) + ": " + write}
	}
	switch {
	case fullReference.MatchString(r.Branch):
		return wrongBranch("write the branch's name alone, such as " + fullReference.ReplaceAllString(r.Branch, ""))
	case !strings.Contains(r.Branch, "{") && notABranch.MatchString(r.Branch):
		return wrongBranch("write the name of a branch, such as main")
	case r.User != "" && r.Token == "":
		return &mistake{
			text:  "user goes with a token: write that too, such as token {env.THEME_TOKEN}",
			field: "user", json: `goes with a token: write that too, such as "token": "{env.THEME_TOKEN}"`,
		}
	}
	return checkVariable("token", r.Token)
}

// connect returns the repository. Nothing is sent to it yet.
func (r *Repository) connect() (*git.Repository, error) {
	if r == nil {
		return nil, errNoRepository
	}
	repository, err := r.resolve()
	if err != nil {
		return nil, inBlock("repository", "repository", err)
	}
	return repository, nil
}

func (r *Repository) resolve() (*git.Repository, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	config := git.Config{}
	for _, value := range []struct {
		name, from string
		to         *string
	}{{"", r.URL, &config.URL}, {"branch", r.Branch, &config.Branch}, {"token", r.Token, &config.Token}, {"user", r.User, &config.User}} {
		var err error
		if *value.to, err = replace(value.name, value.from); err != nil {
			return nil, err
		}
	}
	if err := checkRepositoryURL(config.URL); err != nil {
		return nil, err
	}
	repository, err := git.New(config)
	if err != nil {
		return nil, err
	}
	return repository, nil
}

// serviceName returns what the file name of manifests starts with.
func (a *App) serviceName() string { return cmp.Or(a.Service, "lychgate") }

func checkService(name string) error {
	if _, err := themes.FileName(name); err != nil {
		return &mistake{text: err.Error(), field: "service"}
	}
	return nil
}

// checkThemes checks a site's themes as far as can be without asking anybody.
func (s *Site) checkThemes() error {
	for _, name := range slices.Sorted(maps.Keys(s.Themes)) {
		theme := s.Themes[name]
		if err := checkThemeName(name); err != nil {
			return err
		}
		if kind, ok := s.Platform.kind(); ok && !kind.HasThemes() {
			return inTheme(name, s.Platform.errNoThemes())
		}
		if theme == nil {
			return inTheme(name, errNoRepository)
		}
		if _, err := theme.Repository.connect(); err != nil {
			return inTheme(name, err)
		}
	}
	return nil
}
