package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/spreadsheet"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/members/push"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// pushFlags are those of the command, and its file.
type pushFlags struct {
	file, report, integration, encoding string
	ignoreUnknown, dryRun               bool
}

func pushCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "push <file>", Short: "Creates and updates the members of a CSV file, here and on the publishing platform", Args: one("the CSV file"),
		Long: `
Creates and updates the members that a CSV file has, here and on the site's publishing
platform, by the rules of the members API. Its columns are those of an export, in any
order: email, name, is_subscribed, note, labels, tier_id and member_id. A column that is
left out is not changed; an empty cell clears a name, a note, labels and a tier_id.

Rows of which all is known already cost nothing. So run the same command again after an
interruption: it goes on where it was. Caddy may run meanwhile. No rate limit counts.

Rows that are refused are listed in a report, and the exit code is 1 then.
`,
	}
	var flags pushFlags
	command.Flags().StringVar(&flags.integration, "integration", "", "Whose rules hold: mode, duplicates, newsletters by default (default: the only integration)")
	command.Flags().StringVar(&flags.report, "report", "", "File for the rows that are refused, which only you can read (default: <file>.refused.csv)")
	command.Flags().StringVar(&flags.encoding, "encoding", "", "Encoding of the file, such as windows-1252 (default: UTF-8, or what its byte order mark says)")
	command.Flags().BoolVar(&flags.ignoreUnknown, "ignore-unknown", false, "Leave out columns that are not known")
	command.Flags().BoolVar(&flags.dryRun, "dry-run", false, "Check the file and say what would be done, and do nothing")
	command.RunE = withStore(func(ctx context.Context, out io.Writer, s *siteStore, args []string) error {
		if flags.file = args[0]; flags.report == "" {
			flags.report = strings.TrimSuffix(flags.file, ".csv") + ".refused.csv"
		}
		ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer cancel()
		integration, err := s.pushAs(ctx, flags.integration)
		if err != nil {
			return err
		}
		return s.push(ctx, out, integration, flags)
	})
	return command
}

// pushAs selects the integration by whose rules members are pushed: without a name the
// only one, and one by email if the site has none.
func (s *siteStore) pushAs(ctx context.Context, name string) (members.Integration, error) {
	kept, err := s.store.ListIntegrations(ctx, s.site)
	if err != nil {
		return members.Integration{}, err
	}
	all := make(map[string]members.Integration)
	for _, i := range kept {
		if i.RevokedAt.IsZero() || i.Name == name {
			all[i.Name] = i
		}
	}
	for declared, i := range s.declared {
		plain, err := i.Plain(declared)
		if err != nil {
			return members.Integration{}, err
		}
		plain.Site = s.site
		all[declared] = plain
	}
	if name == "" && len(all) > 1 {
		return members.Integration{}, fmt.Errorf("name the integration whose rules apply with --integration: %s", strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	for found, i := range all {
		if name == "" || found == name {
			return i, nil
		}
	}
	if name != "" {
		return members.Integration{}, fmt.Errorf("site %s has no integration %s: caddy lychgate integration list shows those that it has", s.site, name)
	}
	return members.Integration{Site: s.site, Mode: members.EmailMode, SubscribeByDefault: true}, nil
}

func (s *siteStore) push(ctx context.Context, out io.Writer, integration members.Integration, flags pushFlags) (err error) {
	file, err := os.Open(flags.file)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	total, err := s.checkRows(ctx, file, integration.Mode, flags)
	if err != nil {
		return fmt.Errorf("nothing was pushed: %s: %w", flags.file, err)
	}
	rows, err := newMembersCSV(file, integration.Mode, flags.encoding)
	if err != nil {
		return err
	}
	service, end, err := s.service(ctx, !flags.dryRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	report := &refusals{path: flags.report}
	defer report.discard()
	doing := "Pushing " + countOf(total, "row") + " of " + flags.file + " to site " + s.site
	if flags.dryRun {
		doing = "Checking " + countOf(total, "row") + " of " + flags.file + " for site " + s.site
	}
	p := startProgress(doing, "rows")
	p.set(0, total)
	counts, err := push.Run(ctx, push.Config{
		Service: service, Integration: integration, DryRun: flags.dryRun, Refused: report.add,
		Done: func(rows int) { p.set(rows, total) }, Waiting: func(problem string) { p.say(s.waiting(problem)) },
	}, rows.rows())
	p.end()
	printCounts(out, counts, flags.dryRun)
	if !flags.dryRun {
		audit.Note(ctx, s.site, "members", s.site, "pushed")
	}
	if saveErr := report.save(); saveErr != nil {
		return errors.Join(err, saveErr)
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("the push was interrupted: run it again to go on from there")
	case err != nil:
		return fmt.Errorf("the push ended early, so run it again to go on from there: %w", err)
	case counts.Refused > 0:
		return fmt.Errorf("%s refused: %s says which, and why", countOf(counts.Refused, "row"), flags.report)
	}
	return nil
}

// checkRows reads a file to its end, before anything of it is pushed, and returns how
// many rows it has.
func (s *siteStore) checkRows(ctx context.Context, file *os.File, mode members.Mode, flags pushFlags) (total int, err error) {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(errors.New("it is not a file: write the path of one, which is read twice"), err)
	}
	if err := s.checkOutput("--report", flags.report); err != nil {
		return 0, err
	}
	if isSameFile(flags.file, flags.report) {
		return 0, errors.New("--report names the file itself: write the path of another")
	}
	checked, err := newMembersCSV(file, mode, flags.encoding)
	if err != nil {
		return 0, err
	}
	if len(checked.unknown) > 0 && !flags.ignoreUnknown {
		known := columnNames(slices.DeleteFunc(slices.Clone(memberColumns), func(c memberColumn) bool { return c.set == nil }))
		return 0, fmt.Errorf("line 1: there is no column %q: known are %s; leave others out with --ignore-unknown", checked.unknown[0], strings.Join(known, ", "))
	}
	if ignored := append(checked.ignored, checked.unknown...); len(ignored) > 0 {
		fmt.Fprintf(os.Stderr, "Columns that are ignored: %s\n", printable(strings.Join(ignored, ", ")))
	}
	for _, err := range checked.rows() {
		if err != nil {
			return 0, err
		}
		if total++; ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return total, err
}

// service is the members API of the site. The caller calls end. If it delivers, what is queued is
// retried meanwhile, as Caddy does.
func (s *siteStore) service(ctx context.Context, delivers bool) (service *members.Service, end func() error, err error) {
	to, closePlatform, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	config := members.Config{Site: s.site, Store: s.store, Now: s.now, Integrations: s.store}
	for name, options := range s.declared {
		declared, err := options.Plain(name)
		if err != nil {
			return nil, nil, errors.Join(err, closePlatform())
		}
		config.Declared = append(config.Declared, declared)
	}
	if to == nil || !delivers {
		return members.New(config), closePlatform, nil
	}
	queue, err := work.New(ctx, s.db, zap.NewNop(), s.now)
	if err != nil {
		return nil, nil, errors.Join(err, closePlatform())
	}
	config.Outbox = outbox.New(outbox.Config{
		Store: s.store, Tasks: s.store.Tasks(s.now), Work: queue, Logger: zap.NewNop(), Now: s.now,
		Platform: func(site string) platform.Platform {
			if site != s.site {
				return nil
			}
			return to
		},
	})
	config.Inbound = inbound.New(inbound.Config{
		Store: s.store, Sites: map[string]inbound.Site{s.site: {Platform: to}}, Logger: zap.NewNop(), Now: s.now,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { queue.Run(ctx) })
	return members.New(config), func() error {
		cancel()
		running.Wait()
		return closePlatform()
	}, nil
}

// waiting says that the platform does not take writes, or that it does again.
func (s *siteStore) waiting(problem string) string {
	if problem == "" {
		return s.platform.Title() + " takes writes again."
	}
	return "Waiting for " + s.platform.Title() + ", which does not take a write: " + printable(problem)
}

func printCounts(out io.Writer, c push.Counts, dryRun bool) {
	words := []string{"created", "updated", "unchanged", "refused"}
	if dryRun {
		words = []string{"would be created", "updated", "left as they are", "refused"}
	}
	fmt.Fprintf(out, "%s: %s %s, %s %s, %s %s, %s %s.\n", countOf(c.Total(), "row"), humanize.Comma(int64(c.Created)), words[0],
		humanize.Comma(int64(c.Updated)), words[1], humanize.Comma(int64(c.Unchanged)), words[2], humanize.Comma(int64(c.Refused)), words[3])
	if c.Queued > 0 {
		fmt.Fprintf(out, "%s kept, and sent to the publishing platform by Caddy once that takes writes.\n", countOf(c.Queued, "row"))
	}
}

// refusals is the report of the rows that are refused. There is none without any.
type refusals struct {
	path string
	file *os.File // nil before the first
	out  *bufio.Writer
}

const refusalsHeader = "line,identifier,reason\r\n"

func (r *refusals) add(row push.Row, reason string) error {
	if r.file == nil {
		var err error
		if r.file, err = os.CreateTemp(filepath.Dir(r.path), "."+filepath.Base(r.path)+".*"); err != nil { // with mode 0600
			return fmt.Errorf("--report: %w", err)
		}
		r.out = bufio.NewWriter(r.file)
		_, _ = r.out.WriteString(refusalsHeader) // an error stays with out
	}
	_, err := fmt.Fprintf(r.out, "%d,%s,%s\r\n", row.Line, spreadsheet.Cell(row.Identifier), spreadsheet.Cell(reason))
	return err
}

// save puts the report into its place, or takes away one of an earlier push if nothing
// was refused.
func (r *refusals) save() error {
	if r.file == nil {
		return r.removeOld()
	}
	if info, err := os.Lstat(r.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--report %s is not a file: write the path of one", r.path)
	}
	err := r.out.Flush()
	if err = errors.Join(err, r.file.Close()); err == nil {
		err = os.Rename(r.file.Name(), r.path)
	}
	if err == nil {
		r.file = nil
	}
	return err
}

func (r *refusals) removeOld() error {
	file, err := os.Open(r.path)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	start := make([]byte, len(refusalsHeader))
	_, err = io.ReadFull(file, start)
	_ = file.Close() // only read
	if err != nil || string(start) != refusalsHeader {
		return nil //nolint:nilerr // it is another file
	}
	return os.Remove(r.path)
}

// discard removes what was not saved.
func (r *refusals) discard() {
	if r.file != nil {
		_ = r.file.Close()
		_ = os.Remove(r.file.Name())
	}
}
