package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

func exportCommand() *cobra.Command {
	export := &cobra.Command{
		Use: "export", Short: "Writes all members of a site, as CSV or NDJSON", Args: cobra.NoArgs,
		Long: `
Writes all members of a site, with the fields of the members API, to standard
output or to a file. Caddy may run meanwhile.

In CSV a ' is put in front of what a spreadsheet could run as a formula. NDJSON
has every value as it is, one JSON object on each line.
`,
	}
	format := export.Flags().String("format", "csv", "csv or ndjson")
	output := export.Flags().StringP("output", "o", "", "File to write, which only you can read (default: standard output)")
	integration := export.Flags().String("integration", "", "Whose member_id is written (default: the only integration in Custom ID mode)")
	export.RunE = withStoreThatIs(func(ctx context.Context, out io.Writer, s *siteStore, _ []string) error {
		write, known := exportFormats[*format]
		if !known {
			return fmt.Errorf("--format %q: write csv or ndjson", *format)
		}
		ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer cancel()
		name, err := s.exported(ctx, *integration)
		if err != nil {
			return err
		}
		if *output == "" {
			_, err := s.exportMembers(ctx, out, write, name)
			return err
		}
		if err := s.checkOutput("--output", *output); err != nil {
			return err
		}
		n := 0
		err = writeWhole(*output, func(file io.Writer) (err error) {
			n, err = s.exportMembers(ctx, file, write, name)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "Wrote %s members to %s.\n", humanize.Comma(int64(n)), *output)
		return err
	})
	return export
}

// exported selects the integration whose member_id is exported. It is empty if no
// integration has any.
func (s *siteStore) exported(ctx context.Context, name string) (string, error) {
	kept, err := s.store.ListIntegrations(ctx, s.site)
	if err != nil {
		return "", err
	}
	modes := make(map[string]members.Mode)
	for _, i := range kept {
		modes[i.Name] = i.Mode
	}
	for name, i := range s.declared {
		modes[name] = members.Mode(i.Mode)
	}
	if name != "" {
		if _, known := modes[name]; !known {
			return "", fmt.Errorf("site %s has no integration %s: caddy lychgate integration list shows those that it has", s.site, name)
		}
		return name, nil
	}
	maps.DeleteFunc(modes, func(_ string, mode members.Mode) bool { return mode != members.CustomIDMode })
	switch names := slices.Sorted(maps.Keys(modes)); len(names) {
	case 0:
		return "", nil
	case 1:
		return names[0], nil
	default:
		return "", fmt.Errorf("a member may have a member_id in each of %s: say with --integration whose is written", strings.Join(names, ", "))
	}
}

// exportMembers writes the members of the site, and returns how many.
func (s *siteStore) exportMembers(ctx context.Context, out io.Writer, format exportFormat, integration string) (n int, err error) {
	seen := func(int, int) {}
	if file, ok := out.(*os.File); !ok || !isTerminal(file) { // on which a bar would stand amid the members
		p := startProgress("Exporting the members of site "+s.site, "members")
		defer p.end()
		seen = p.set
	}
	buffered := bufio.NewWriter(out)
	write := format(buffered)
	for m, err := range s.store.All(ctx, s.site, integration) {
		if ctx.Err() != nil {
			return n, fmt.Errorf("the export was interrupted, so it is not whole: %w", ctx.Err())
		}
		if err != nil {
			return n, err
		}
		if err := write(membersapi.NewMemberRecord(m)); err != nil {
			return n, err
		}
		n++
		seen(n, 0)
	}
	return n, buffered.Flush()
}

// exportFormat begins an export, and returns what writes a record.
type exportFormat func(*bufio.Writer) func(membersapi.MemberRecord) error

// exportFormats are the values of --format.
var exportFormats = map[string]exportFormat{"csv": csvFormat, "ndjson": ndjsonFormat}

func ndjsonFormat(out *bufio.Writer) func(membersapi.MemberRecord) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return func(r membersapi.MemberRecord) error { return encoder.Encode(r) }
}
