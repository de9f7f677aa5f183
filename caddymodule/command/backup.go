package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

func backupCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "backup <file>", Short: "Copies the store to a file, while Caddy runs or not", Args: one("the file"),
		Long: `
Copies an SQLite store to a file that is not there yet, and that only you can read.
Caddy may run, and goes on writing: all that it had acknowledged when the copy began
is in it. The file is there once it is checked and on disk. To restore it, stop Caddy
and put it in the place of the store, without the files whose names end in -wal and
-shm.

For a store in PostgreSQL it prints the command that makes a backup, without the
password, and the exit code is 1, because none was made.

The store is not all: keep the configuration and its environment too, and in another
place than the backup the secret, without which keys of sites in the store cannot be
opened.
`,
	}
	addConfigFlags(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true
		ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer cancel()
		of, err := readConfig(cmd)
		if err != nil {
			return err
		}
		kind, source, err := of.Store.Resolve(caddymodule.Placeholders(), caddymodule.StoreFile())
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if kind == database.Postgres {
			if err := printDump(out, source, args[0]); err != nil {
				return err
			}
			return errors.New("no backup was made, because PostgreSQL has a command of its own: run the one above, with umask 077; give it the password in the file .pgpass")
		}
		return backUp(ctx, out, cmd.ErrOrStderr(), of.Config, source, args[0])
	}
	return command
}

// printDump prints the command that backs a store in PostgreSQL up.
func printDump(out io.Writer, source, path string) error {
	args, err := database.DumpArguments(source, path)
	if err != nil {
		return err
	}
	for i, arg := range args {
		args[i] = quoteForShell(arg)
	}
	_, err = fmt.Fprintln(out, "pg_dump "+strings.Join(args, " "))
	return err
}

// backUp copies an SQLite store, and says what else belongs to a backup.
func backUp(ctx context.Context, out, progress io.Writer, of *config.Config, source, path string) error {
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return noStore(database.Place(database.SQLite, source))
	}
	waiting := new(waitingLine)
	waiting.start(progress, "Copying the store …")
	err := database.Backup(ctx, source, path)
	waiting.stop()
	switch {
	case ctx.Err() != nil:
		return errors.New("the backup was interrupted, so there is none")
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s already exists: write the path of a new file, such as %s", path, datedName)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: make it, or write another path", filepath.Dir(path))
	case err != nil:
		return fmt.Errorf("there is no backup: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Copied the store to %s: %s, checked.\n", path, humanize.IBytes(uint64(info.Size())))
	fmt.Fprintln(out, "Keep the configuration and its environment too.")
	fmt.Fprintln(out, "Keys that are rotated or revoked from now on are valid again once this is restored.")
	if len(of.Secrets) > 0 {
		fmt.Fprintln(out, "Keep the secret in another place: without it, keys of sites in the store cannot be opened.")
	}
	return nil
}

// datedName is how a shell writes the name of a file that is another each day.
const datedName = "lychgate-$(date +%F).db"

// quoteForShell quotes an argument for a POSIX shell.
func quoteForShell(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
