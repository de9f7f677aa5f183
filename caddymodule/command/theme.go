package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

func themeCommand() *cobra.Command {
	root := &cobra.Command{Use: "theme", Short: "Manages the theme repositories of sites in the store"}
	addConfigFlags(root)
	site := root.PersistentFlags().String("site", "", "Name of the site")

	add := &cobra.Command{Use: "add <name>", Short: "Has a theme refreshed from a repository, or from another", Args: one("the theme, as Ghost calls it")}
	repository := add.Flags().String("repository", "", "Where the repository is cloned from, over HTTPS")
	branch := add.Flags().String("branch", "", "Branch that is read (default: the repository's default)")
	token := add.Flags().String("token", "", "Token that may read the repository; - reads it from standard input")
	user := add.Flags().String("user", "", "User name that the token is sent with (default: x-access-token)")
	add.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, args []string) error {
		if *repository == "" {
			return errors.New("say where the theme is, as in: --repository https://git.example.com/acme/nightly.git")
		}
		if *token != "" && *token != "-" {
			return errors.New("--token takes - alone, and reads the token from standard input")
		}
		if *token == "-" {
			var err error
			if *token, err = readLine(add.InOrStdin()); *token == "" {
				return errors.Join(errors.New("--token - reads the token from standard input, which has none"), err)
			}
		}
		themes, err := s.themes(ctx, *site)
		if err != nil {
			return err
		}
		r := map[string]any{"url": *repository, "branch": orNull(*branch), "token": orNull(*token), "user": orNull(*user)}
		if before := themes[args[0]]; *token == "" && before != nil && before.Repository.URL == *repository {
			delete(r, "token") // it stays
			if *user == "" {
				delete(r, "user")
			}
		}
		if err := s.patchTheme(ctx, *site, args[0], map[string]any{"repository": r}); err != nil {
			return err
		}
		fmt.Fprintf(out, "The theme %s of site %s can be refreshed from %s now.\n", args[0], *site, *repository)
		return nil
	})

	list := &cobra.Command{Use: "list", Short: "Lists the themes of a site that are refreshed from repositories", Args: cobra.NoArgs}
	list.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, _ []string) error {
		themes, err := s.themes(ctx, *site)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tREPOSITORY\tBRANCH")
		for _, name := range slices.Sorted(maps.Keys(themes)) {
			fmt.Fprintf(table, "%s\t%s\t%s\n", name, themes[name].Repository.URL, themes[name].Repository.Branch)
		}
		return table.Flush()
	})

	remove := &cobra.Command{Use: "remove <name>", Short: "Has a theme no longer refreshed from its repository", Args: one("the theme")}
	remove.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, args []string) error {
		themes, err := s.themes(ctx, *site)
		if err != nil {
			return err
		}
		if themes[args[0]] == nil {
			return fmt.Errorf("site %s has no theme %s with a repository: list shows those that have", *site, args[0])
		}
		if err := s.patchTheme(ctx, *site, args[0], nil); err != nil {
			return err
		}
		fmt.Fprintf(out, "The theme %s of site %s is no longer refreshed. Its manifest stays.\n", args[0], *site)
		return nil
	})
	group(root, add, list, remove)
	return root
}

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func (s *sitesStore) themes(ctx context.Context, site string) (map[string]*config.Theme, error) {
	if site == "" {
		return nil, errors.New("name a site in the store with --site: caddy lychgate site list shows them")
	}
	if s.Sites[site] != nil {
		return nil, fmt.Errorf("site %s is in the configuration: its themes are there too", site)
	}
	kept, err := s.sites.Find(ctx, site)
	if err != nil {
		return nil, err
	}
	return config.ShowSite(kept).Themes, nil
}

// patchTheme changes a theme of a site, or removes it for a nil change.
func (s *sitesStore) patchTheme(ctx context.Context, site, name string, change any) error {
	if _, err := s.themes(ctx, site); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"themes": map[string]any{name: change}})
	if err != nil {
		return err
	}
	return s.Patch(ctx, map[string]json.RawMessage{site: patch}, false)
}
