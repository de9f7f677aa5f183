package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

func secretCommand() *cobra.Command {
	root := &cobra.Command{Use: "secret", Short: "Manages the secret that seals keys in the store"}
	addConfigFlags(root)
	reseal := &cobra.Command{
		Use: "reseal", Short: "Seals all keys in the store with the first secret", Args: cobra.NoArgs,
		Long: `
Seals all keys in the store with the first secret of the configuration. To change the
secret, write the new one in front of the old one, restart each edge, run this, and take
the old one out:

	secret {env.LYCHGATE_SECRET} {env.LYCHGATE_OLD_SECRET}

Where the secrets are in files, a reload is enough.
`,
	}
	reseal.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, _ []string) error {
		if len(s.Secrets) == 0 {
			return errors.New("the configuration has no secret: " + config.WriteSecret)
		}
		var resealed, failed int
		for kept, err := range s.sites.All(ctx) {
			if err != nil {
				return err
			}
			done, err := s.sites.Reseal(ctx, kept.Name)
			switch {
			case errors.Is(err, sites.ErrNotFound): // removed meanwhile
			case err != nil && kept.Locked != nil:
				failed++
				fmt.Fprintf(out, "Site %s: its keys cannot be opened: %v.\n", kept.Name, kept.Locked)
			case err != nil:
				return err
			case done:
				resealed++
			}
		}
		if resealed > 0 {
			fmt.Fprintf(out, "The keys of %s are sealed anew.\n", countOf(resealed, "site"))
		} else if failed == 0 {
			fmt.Fprintln(out, "All keys are sealed with the first secret already.")
		}
		if failed > 0 {
			return fmt.Errorf("the keys of %s cannot be opened: write the secret that sealed them behind the others, or give each its key again with caddy lychgate site update <name> --admin-key -", countOf(failed, "site"))
		}
		return nil
	})
	group(root, reseal)
	return root
}
