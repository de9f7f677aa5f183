package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

func downgradeCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "downgrade <tables>=<version>...", Short: "Takes tables of the store back for an older Lychgate", Args: cobra.MinimumNArgs(1),
		Long: `
Takes tables of the store back to a version that an older Lychgate knows, which logs the
command when it refuses the store. What only newer versions keep in these tables is
lost: make a backup first. All edges have to be stopped. Run this with the newest
Lychgate that has used the store.
`,
	}
	addConfigFlags(command)
	command.RunE = func(cmd *cobra.Command, args []string) (err error) {
		cmd.SilenceUsage = true
		wanted, err := versionsOf(args)
		if err != nil {
			return err
		}
		of, err := readConfig(cmd)
		if err != nil {
			return err
		}
		running, err := runningWith(of.text)
		if err != nil {
			return err
		}
		switch is, err := running.isRunning(cmd.Context()); {
		case is:
			return errors.New("stop all edges first: a Caddy with Lychgate runs on this machine")
		case err != nil && !errors.Is(err, errNoAdminAPI):
			return fmt.Errorf("stop all edges first: one may run on this machine: %w", err)
		}
		db, _, err := openDatabase(cmd, of, false)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		schemas := slices.DeleteFunc(edge.Schemas(), func(schema database.Schema) bool { return wanted[schema.Name] == 0 })
		for _, schema := range schemas { // all, before one of them is taken back
			if _, err := schema.CheckDown(cmd.Context(), db, wanted[schema.Name]); err != nil {
				return err
			}
		}
		for _, schema := range schemas {
			from, err := schema.Down(cmd.Context(), db, wanted[schema.Name])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The tables of %s have version %d now, not %d.\n", schema.Name, wanted[schema.Name], from)
		}
		return nil
	}
	return command
}

// versionsOf reads the versions of tables, by their schemas' names.
func versionsOf(args []string) (map[string]int64, error) {
	known := make(map[string]database.Schema)
	for _, schema := range edge.Schemas() {
		known[schema.Name] = schema
	}
	wanted := make(map[string]int64)
	for _, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		version, err := strconv.ParseInt(text, 10, 64)
		if _, isKnown := known[name]; !isKnown || err != nil || version < 1 || wanted[name] != 0 {
			return nil, fmt.Errorf("%q is not <tables>=<version>, such as members=7: known are %s", arg, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		wanted[name] = version
	}
	return wanted, nil
}
