package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// addStoreFlags adds the flags that a siteStore is found by.
func addStoreFlags(cmd *cobra.Command) {
	addConfigFlags(cmd)
	cmd.PersistentFlags().String("site", "", "Name of the site (default: the only one)")
}

// siteStore is what a command works on.
type siteStore struct {
	site     string
	declared map[string]*config.Integration
	platform *config.Platform
	locked   error // why its keys cannot be opened
	apiURL   string
	store    *memberstore.SQL
	db       *database.DB
	now      func() time.Time // by the store's clock
	file     string           // of SQLite; empty for PostgreSQL
}

// onStore is what a command does with the store.
type onStore func(ctx context.Context, out io.Writer, s *siteStore, args []string) error

// withStore does something with the store and the site that the flags name. A store that is
// not there yet is made.
func withStore(do onStore) func(*cobra.Command, []string) error { return openStore(do, true) }

// withStoreThatIs is withStore for what only reads, so that a path which is
// misspelt is not taken for a store without members.
func withStoreThatIs(do onStore) func(*cobra.Command, []string) error { return openStore(do, false) }

func openStore(do onStore, mayMake bool) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		cmd.SilenceUsage = true
		name, _ := cmd.Flags().GetString("site")
		of, err := readConfig(cmd)
		if err == nil && len(of.apis) == 0 {
			err = errors.New("the configuration has no members_api directive, so no key would be of use: write members_api into the site's block")
		}
		if err != nil {
			return err
		}
		if name, err = siteNamed(of.Config, name); err != nil {
			return err
		}
		db, file, err := openDatabase(cmd, of, mayMake)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		store, err := memberstore.NewSQL(cmd.Context(), db)
		if err != nil {
			return err
		}
		site, locked, err := findSite(cmd.Context(), of.Config, db, name)
		if err != nil {
			return err
		}
		found := &siteStore{
			file: file, site: name, declared: site.Integrations, platform: site.Platform, locked: locked, store: store, db: db, now: db.Now,
			apiURL: of.apis.url(caddy.NewReplacer().ReplaceKnown(site.Hosts[0], "")),
		}
		return audited(cmd.Context(), db, func(ctx context.Context) error { return do(ctx, cmd.OutOrStdout(), found, args) })
	}
}

// siteNamed takes a name that the configuration does not have for one of the store.
// Without a name it is the only site of the configuration.
func siteNamed(of *config.Config, name string) (string, error) {
	names := of.Names()
	switch {
	case of.Sites[name] != nil && len(of.Sites[name].Hosts) > 0:
		return name, nil
	case name == "" && len(names) == 1 && len(of.Sites[names[0]].Hosts) > 0:
		return names[0], nil
	case name != "" && of.Sites[name] == nil:
		return name, nil // of the store, maybe
	case len(names) == 0:
		return "", errors.New("name the site with --site: caddy lychgate site list shows those that there are")
	}
	return "", fmt.Errorf("name one of the configuration's sites with --site: %s", strings.Join(names, ", "))
}

// findSite looks in the configuration and then in the store. locked says why the keys of a
// site in the store cannot be opened.
func findSite(ctx context.Context, of *config.Config, db *database.DB, name string) (site *config.Site, locked, err error) {
	if site := of.Sites[name]; site != nil {
		return site, nil, nil
	}
	keys, err := of.Keyring(caddymodule.Placeholders())
	if err != nil {
		return nil, nil, err
	}
	store, err := sites.NewSQL(ctx, db, keys)
	if err != nil {
		return nil, nil, err
	}
	kept, err := store.Find(ctx, name)
	if errors.Is(err, sites.ErrNotFound) {
		err = noSite(of, name)
	}
	if err != nil {
		return nil, nil, err
	}
	site, err = config.FromStore(kept)
	return site, kept.Locked, err
}

func noSite(of *config.Config, name string) error {
	if len(of.Sites) == 0 {
		return fmt.Errorf("there is no site %s: caddy lychgate site list shows those that there are", name)
	}
	return fmt.Errorf("the configuration has no site %s, nor has the store: the configuration has %s", name, strings.Join(of.Names(), ", "))
}

func (s *siteStore) connect() (to platform.Platform, end func() error, err error) {
	if s.locked != nil {
		return nil, nil, fmt.Errorf("the keys of site %s cannot be opened: %w: see that secret in the configuration has the one that sealed them", s.site, s.locked)
	}
	if to, err = s.platform.Connect(caddymodule.Placeholders()); err != nil {
		return nil, nil, fmt.Errorf("site %s: %w", s.site, err)
	}
	if closer, ok := to.(io.Closer); ok {
		return to, closer.Close, nil
	}
	return to, func() error { return nil }, nil
}

func (s *siteStore) platformURL() string {
	return caddy.NewReplacer().ReplaceKnown(s.platform.URL, "")
}
