package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

func integrationCommand() *cobra.Command {
	root := &cobra.Command{Use: "integration", Short: "Manages the keys of the members API"}
	addStoreFlags(root)

	add := &cobra.Command{
		Use: "add <name>", Short: "Adds an integration and prints its API URL and key, this once", Args: one("the integration"),
	}
	mode := add.Flags().String("mode", "email", "How members are identified: email or custom_id")
	duplicates := add.Flags().Bool("allow-duplicate-emails", false, "With custom_id: let members share an email")
	adopt := add.Flags().Bool("adopt-by-email", false, "With custom_id: give the ID of a new member to one who has the email already")
	domain := add.Flags().String("placeholder-domain", "", "With duplicates: the domain of their addresses (default: members.invalid)")
	subscribe := add.Flags().Bool("subscribe-by-default", true, "Give new members newsletters if the caller does not say")
	limit := add.Flags().String("limit", "", `Rate limit of the key, such as "600 1m" (default: that of members_api)`)
	add.RunE = withStore(func(ctx context.Context, out io.Writer, s *siteStore, args []string) error {
		asked, err := parseLimit(*limit)
		if err != nil {
			return err
		}
		options := s.declared[args[0]]
		if options == nil {
			options = &config.Integration{
				Mode: *mode, AllowDuplicateEmails: *duplicates, AdoptByEmail: *adopt,
				PlaceholderDomain: *domain, SubscribeByDefault: subscribe, Limit: asked,
			}
		} else if options.Key != "" {
			return fmt.Errorf("the configuration declares an integration %s with a key: choose another name, or take the key out there", args[0])
		}
		integration, err := options.Plain(args[0])
		if err != nil {
			return err
		}
		integration.Site = s.site
		key, _, err := s.keys().Add(ctx, integration)
		if errors.Is(err, members.ErrIntegrationTaken) {
			return fmt.Errorf("site %s has an integration %s: choose another name, or give it another key with rotate", s.site, args[0])
		}
		if err == nil {
			s.printKey(out, key)
		}
		return err
	})

	list := &cobra.Command{Use: "list", Short: "Lists the integrations of a site", Args: cobra.NoArgs}
	list.RunE = withStoreThatIs(func(ctx context.Context, out io.Writer, s *siteStore, _ []string) error {
		integrations, err := s.store.ListIntegrations(ctx, s.site)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tMODE\tLIMIT\tKEY\tLAST USED")
		keys, modes, used, limits := make(map[string]string), make(map[string]string), make(map[string]string), make(map[string]string)
		for _, i := range integrations {
			modes[i.Name], keys[i.Name] = string(i.Mode), "made "+i.CreatedAt.Format(time.DateOnly)
			limits[i.Name] = config.ShowLimit(i.Limit)
			if !i.RotatedAt.IsZero() {
				keys[i.Name] = "rotated " + i.RotatedAt.Format(time.DateOnly)
			}
			if !i.RevokedAt.IsZero() {
				keys[i.Name] = "revoked " + i.RevokedAt.Format(time.DateOnly)
			}
			if !i.LastUsedAt.IsZero() {
				used[i.Name] = i.LastUsedAt.Format("2006-01-02 15:04") + " UTC"
			}
		}
		for name, i := range s.declared {
			modes[name], limits[name] = cmp.Or(i.Mode, string(members.EmailMode)), ""
			if plain, err := i.Plain(name); err == nil {
				limits[name] = config.ShowLimit(plain.Limit)
			}
			if i.Key != "" {
				keys[name], used[name] = "in the configuration", "not kept"
			}
		}
		for _, name := range slices.Sorted(maps.Keys(modes)) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name, modes[name], cmp.Or(limits[name], "default"), cmp.Or(keys[name], "none yet: add makes one"), cmp.Or(used[name], "never"))
		}
		return table.Flush()
	})

	rotate := &cobra.Command{Use: "rotate <name>", Short: "Gives an integration another key and prints it, this once", Args: one("the integration")}
	rotate.RunE = withStore(func(ctx context.Context, out io.Writer, s *siteStore, args []string) error {
		key, err := s.keys().Rotate(ctx, s.site, args[0])
		if err != nil {
			return s.unknown(err, args[0])
		}
		s.printKey(out, key)
		return nil
	})

	revoke := &cobra.Command{Use: "revoke <name>", Short: "Revokes an integration's key", Args: one("the integration")}
	revoke.RunE = withStore(func(ctx context.Context, out io.Writer, s *siteStore, args []string) error {
		if err := s.keys().Revoke(ctx, s.site, args[0]); err != nil {
			return s.unknown(err, args[0])
		}
		fmt.Fprintf(out, "The key of %s is revoked.\n", args[0])
		return nil
	})

	group(root, add, list, updateIntegrationCommand(), rotate, revoke)
	return root
}

func updateIntegrationCommand() *cobra.Command {
	update := &cobra.Command{
		Use: "update <name>", Short: "Changes the rate limit of an integration", Args: one("the integration"),
		Long: `
Changes the rate limit of an integration in the store. It holds from the next request
on, on all edges, and the requests before still count. An empty --limit takes that of
members_api again.
`,
	}
	text := update.Flags().String("limit", "", `Rate limit of the key, such as "600 1m"`)
	update.RunE = withStoreThatIs(func(ctx context.Context, out io.Writer, s *siteStore, args []string) error {
		if !update.Flags().Changed("limit") {
			return errors.New(`say what to change, as in: --limit "600 1m"`)
		}
		asked, err := parseLimit(*text)
		if err != nil {
			return err
		}
		if s.declared[args[0]] != nil {
			return fmt.Errorf("the configuration declares the integration %s: write its limit there", args[0])
		}
		changed, err := (&config.Integration{Limit: asked}).Plain(args[0])
		if err != nil {
			return err
		}
		if err := s.keys().Limit(ctx, s.site, args[0], changed.Limit); err != nil {
			return s.unknown(err, args[0])
		}
		fmt.Fprintf(out, "The rate limit of %s is %s now.\n", args[0], cmp.Or(config.ShowLimit(changed.Limit), "that of members_api"))
		return nil
	})
	return update
}

func parseLimit(text string) (*config.Limit, error) {
	limit, err := config.ParseLimitText(text)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return limit, nil
}

func (s *siteStore) keys() *members.KeyService {
	return &members.KeyService{Store: s.store, Now: time.Now}
}

func (s *siteStore) printKey(out io.Writer, key string) {
	fmt.Fprintf(out, "API URL: %s\nKey:     %s\n", s.apiURL, key)
}

func (s *siteStore) unknown(err error, name string) error {
	switch {
	case !errors.Is(err, members.ErrNotFound):
		return err
	case s.declared[name] != nil && s.declared[name].Key != "":
		return fmt.Errorf("the key of %s is in the configuration: change it there", name)
	}
	return fmt.Errorf("site %s has no integration %s: list shows those that it has", s.site, name)
}
