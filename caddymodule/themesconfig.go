package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

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

// themeName is how Ghost names themes: after the zip, with what is not one of
// these replaced.
var themeName = regexp.MustCompile(`^[A-Za-z0-9_@.-]{1,200}$`)

func checkThemeName(name string) error {
	if !themeName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("theme %q: write the theme's name as Ghost's settings show it, such as nightly", name)
	}
	return nil
}

var errNoRepository = errors.New("needs a repository to be refreshed from, such as: repository https://git.example.com/acme/nightly.git")

func (t *Theme) unmarshalCaddyfile(d *caddyfile.Dispenser, name string) error {
	err := parseBlock(d, "theme "+name, map[string]option{
		"repository": {example: "repository https://git.example.com/acme/nightly.git", args: 1, block: func(args []string) error {
			t.Repository = &Repository{URL: args[0]}
			if err := checkEach(args, checkRepository); err != nil {
				return d.WrapErr(fmt.Errorf("theme %s: %w", name, err))
			}
			return t.Repository.unmarshalCaddyfile(d)
		}},
	})
	if err == nil && t.Repository == nil {
		err = d.WrapErr(fmt.Errorf("theme %s: %w", name, errNoRepository))
	}
	return err
}

func checkRepository(url string) error {
	if _, err := git.New(git.Config{URL: url}); err != nil {
		return fmt.Errorf("repository: %w", err)
	}
	return nil
}

func (r *Repository) unmarshalCaddyfile(d *caddyfile.Dispenser) error {
	text := func(name, example string, value *string) option {
		return option{example: name + " " + example, args: 1, set: func(args []string) error {
			if *value = args[0]; *value == "" {
				return fmt.Errorf("%s is empty: write it as in: %s %s, or leave it out", name, name, example)
			}
			return nil
		}}
	}
	err := parseBlock(d, "repository", map[string]option{
		"branch": text("branch", "main", &r.Branch),
		"token":  text("token", "{env.THEME_TOKEN}", &r.Token),
		"user":   text("user", "x-access-token", &r.User),
	})
	if err == nil {
		if err = r.check(); err != nil {
			err = d.WrapErr(fmt.Errorf("repository: %w", err))
		}
	}
	return err
}

var (
	fullReference = regexp.MustCompile(`^refs/(?:heads/)?`)
	notABranch    = regexp.MustCompile(`[[:cntrl:] ~^:?*\[\\]|\.\.|@\{|//|/$|^/|\.lock$`) // git-check-ref-format(1)
	shellVariable = regexp.MustCompile(`^\$\{?([A-Za-z_]\w*)\}?$`)
)

// check checks what can be without knowing the values of placeholders.
func (r *Repository) check() error {
	variable := shellVariable.FindStringSubmatch(r.Token)
	switch {
	case fullReference.MatchString(r.Branch):
		return fmt.Errorf("branch %q: write the branch's name alone, such as %s", r.Branch, fullReference.ReplaceAllString(r.Branch, ""))
	case !strings.Contains(r.Branch, "{") && notABranch.MatchString(r.Branch):
		return fmt.Errorf("branch %q: write the name of a branch, such as main", r.Branch)
	case variable != nil:
		return fmt.Errorf("token %s: write {env.%s} for the variable of that name", variable[0], variable[1])
	case r.User != "" && r.Token == "":
		return errors.New("user goes with a token: write that too, such as token {env.THEME_TOKEN}")
	}
	return nil
}

// connect returns the repository. Nothing is sent to it yet.
func (r *Repository) connect() (*git.Repository, error) {
	if r == nil {
		return nil, errNoRepository
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("repository: %w", err)
	}
	config := git.Config{}
	for _, value := range []struct {
		name, from string
		to         *string
	}{{"", r.URL, &config.URL}, {"branch: ", r.Branch, &config.Branch}, {"token: ", r.Token, &config.Token}, {"user: ", r.User, &config.User}} {
		var err error
		if *value.to, err = caddy.NewReplacer().ReplaceOrErr(value.from, true, true); err != nil {
			return nil, fmt.Errorf("repository: %s%w: set it where Caddy runs, or leave the option out", value.name, err)
		}
	}
	repository, err := git.New(config)
	if err != nil {
		return nil, fmt.Errorf("repository: %w", err)
	}
	return repository, nil
}

// serviceName returns what the file name of manifests starts with.
func (a *App) serviceName() string { return cmp.Or(a.Service, "lychgate") }

func checkService(name string) error {
	_, err := themes.FileName(name)
	return err
}

// checkThemes checks a site's themes as far as can be without asking anybody.
func (s *Site) checkThemes() error {
	for name, theme := range s.Themes {
		if err := checkThemeName(name); err != nil {
			return err
		}
		if s.Platform != nil && s.Platform.Kind == "none" {
			return fmt.Errorf("theme %s: a site with platform none has no themes: take the theme out, or write platform ghost", name)
		}
		if theme == nil {
			return fmt.Errorf("theme %s: %w", name, errNoRepository)
		}
		if _, err := theme.Repository.connect(); err != nil {
			return fmt.Errorf("theme %s: %w", name, err)
		}
	}
	return nil
}
