package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// siteWork is what a command does with the sites in the store.
type siteWork func(ctx context.Context, out io.Writer, s *sitesStore, args []string) error

// sitesStore is what such a command works on.
type sitesStore struct {
	*config.Editor
	sites   *sites.SQL
	members *memberstore.SQL
	db      *database.DB
	running *runningCaddy
	notes   io.Writer // for people, beside the output
}

// withSites runs work on the store that the configuration names.
func withSites(mayMake bool, do siteWork) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		cmd.SilenceUsage = true
		of, err := readConfig(cmd)
		if err == nil && of.Store == nil && len(of.apis) == 0 && !bytes.Contains(of.text, []byte(`"theme_manifest"`)) {
			err = edge.ErrNoStore
		}
		if err != nil {
			return err
		}
		running, err := runningWith(of.text)
		if err != nil {
			return err
		}
		keys, err := of.Keyring(caddymodule.Placeholders())
		if err != nil {
			return err
		}
		db, _, err := openDatabase(cmd, of, mayMake)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		store, err := sites.NewSQL(cmd.Context(), db, keys)
		if err != nil {
			return err
		}
		members, err := memberstore.NewSQL(cmd.Context(), db)
		if err != nil {
			return err
		}
		editor := &config.Editor{
			Config: of.Config, Placeholders: caddymodule.Placeholders(), Lines: caddymodule.LinesOf("lychgate", *of.Config),
			Store: store, CountPending: members.CountPending,
		}
		return explainSites(audited(cmd.Context(), db, func(ctx context.Context) error {
			return do(ctx, cmd.OutOrStdout(), &sitesStore{editor, store, members, db, running, cmd.ErrOrStderr()}, args)
		}))
	}
}

// explainSites says what to do about an error of the store of sites.
func explainSites(err error) error {
	pending, invalid := (*config.PendingError)(nil), (*config.InvalidSiteError)(nil)
	switch {
	case errors.As(err, &invalid):
		return errors.New(flagNames.Replace(err.Error()))
	case errors.As(err, &pending):
		return fmt.Errorf("%w: wait, or write --force to lose them", err)
	case errors.Is(err, sites.ErrNoSecret):
		return fmt.Errorf("%w: %s", err, config.WriteSecret)
	case errors.Is(err, sites.ErrNotFound):
		return fmt.Errorf("%w: caddy lychgate site list shows those in the store", err)
	case errors.Is(err, sites.ErrLeaving):
		return fmt.Errorf("%w: it takes two minutes while Caddy runs, so try again then, or choose another name", err)
	case errors.Is(err, sites.ErrConflict):
		return fmt.Errorf("%w: try again", err)
	}
	return err
}
