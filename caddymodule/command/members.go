package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
)

func membersCommand() *cobra.Command {
	root := &cobra.Command{Use: "members", Short: "Manages the members that Lychgate keeps"}
	addStoreFlags(root)
	importAll := &cobra.Command{
		Use: "import", Short: "Imports all members of the publishing platform", Args: cobra.NoArgs,
		Long: `
Imports all members of the site's publishing platform. Members that are known
already are updated, and those that were removed there are removed. Caddy may run meanwhile. When it is interrupted, it goes on from there
the next time.
`,
	}
	anew := importAll.Flags().Bool("anew", false, "Start from the first member even if an import was interrupted")
	importAll.RunE = withStore(func(ctx context.Context, out io.Writer, s *siteStore, _ []string) error {
		ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer cancel()
		return s.importMembers(ctx, out, *anew)
	})
	group(root, importAll, exportCommand(), pushCommand(), showCommand())
	return root
}

func (s *siteStore) importMembers(ctx context.Context, out io.Writer, anew bool) (err error) {
	from, closePlatform, err := s.connect()
	if err != nil {
		return err
	}
	if from == nil {
		return fmt.Errorf("site %s has platform %s, so there are no members to import", s.site, s.platform.Kind)
	}
	defer func() { err = errors.Join(err, closePlatform()) }()
	sync := inbound.New(inbound.Config{
		Store: s.store, Sites: map[string]inbound.Site{s.site: {Platform: from}}, Logger: zap.NewNop(),
	})
	p := startProgress("Importing the members of site "+s.site+" from "+s.platformURL(), "members")
	result, err := sync.Import(ctx, s.site, s.store, anew, p.set)
	p.end()
	if err != nil && result.Seen == 0 {
		return fmt.Errorf("nothing was imported: %w", err)
	}
	audit.Note(ctx, s.site, "members", s.site, "imported")
	fmt.Fprintf(out, "%s members: %s new, %s changed, %s removed.\n", humanize.Comma(int64(result.Seen)),
		humanize.Comma(int64(result.Added)), humanize.Comma(int64(result.Changed)), humanize.Comma(int64(result.Removed)))
	for _, id := range result.Skipped {
		fmt.Fprintf(out, "Skipped %s: another member has its email here, in another spelling. Change one of the two in %s.\n", id, s.platform.Title())
	}
	for _, id := range result.Failed {
		fmt.Fprintf(out, "Skipped %s: cannot compare it now. Run the import again.\n", id)
	}
	if err != nil {
		return fmt.Errorf("the import ended early, so run it again to go on from there: %w", err)
	}
	return nil
}
