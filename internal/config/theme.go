package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes/git"
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

var errNoRepository = &Mistake{
	Field: "repository",
	Text:  `needs a repository to be refreshed from, such as ‹repository https://git.example.com/acme/nightly.git|{"url": "https://git.example.com/acme/nightly.git"}›`,
}

var (
	fullReference = regexp.MustCompile(`^refs/(?:heads/)?`)
	notABranch    = regexp.MustCompile(`[[:cntrl:] ~^:?*\[\\]|\.\.|@\{|//|/$|^/|\.lock$`) // git-check-ref-format(1)
)

// The repository is nil if its address has a placeholder that is left out.
func (r *Repository) resolve(p Placeholders) (*git.Repository, error) {
	if r.User != "" && r.Token == "" {
		return nil, &Mistake{Field: "user", Text: `‹user |›goes with a token: write that too, such as ‹token {env.THEME_TOKEN}|"token": "{env.THEME_TOKEN}"›`}
	}
	config := git.Config{}
	for _, value := range []struct {
		option, from string
		to           *string
		check        func(string) error
	}{
		{"", r.URL, &config.URL, checkRepositoryURL},
		{"branch", r.Branch, &config.Branch, checkBranch},
		{"token", r.Token, &config.Token, func(token string) error { return checkVariable("token", token) }},
		{"user", r.User, &config.User, func(string) error { return nil }},
	} {
		err := p.Use(value.option, value.from, func(text string) error {
			*value.to = text
			return value.check(text)
		})
		if value.option == "" {
			err = inField("url", err)
		}
		if err != nil {
			return nil, err
		}
	}
	if config.URL == "" {
		return nil, nil
	}
	return git.New(config)
}

func checkBranch(branch string) error {
	wrong := func(write string) error {
		return &Mistake{Option: "branch", Text: quote(branch) + ": " + write}
	}
	switch {
	case fullReference.MatchString(branch):
		return wrong("write the branch's name alone, such as " + fullReference.ReplaceAllString(branch, ""))
	case notABranch.MatchString(branch):
		return wrong("write the name of a branch, such as main")
	}
	return nil
}

// checkRepositoryURL checks an address, which is in no error: it may have
// credentials in it.
func checkRepositoryURL(address string) error {
	_, err := git.New(git.Config{URL: address})
	if err == nil {
		if u, parseErr := url.Parse(address); parseErr != nil || !platform.IsServer(u) {
			err = errors.New("the port is not valid: write the address of a git repository, such as https://git.example.com/acme/nightly.git")
		} else if page := pageOfRepository.FindStringSubmatch(u.Host + u.Path); page != nil && !strings.HasSuffix(u.Path, ".git") {
			err = fmt.Errorf("this is a page about the repository: write the address that git clones from, such as %s://%s.git, and its branch in a block", u.Scheme, strings.TrimSuffix(page[1]+page[2], ".git"))
		}
	}
	if err != nil {
		return &Mistake{Text: literal(err.Error())}
	}
	return nil
}

// pageOfRepository matches the host and path of a page that GitHub, Bitbucket, GitLab or
// Gitea have about a repository, such as that of a folder. GitLab and Gitea may be anywhere.
var pageOfRepository = regexp.MustCompile(`^((?:www\.)?(?:github\.com|bitbucket\.org)(?:/[^/]+){2})/.|` +
	`^([^/]+(?:/[^/]+){2,}?)/(?:-|src/(?:branch|commit|tag)|tree|blob)/.`)
