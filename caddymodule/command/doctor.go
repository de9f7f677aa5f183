package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/doctor"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

func doctorCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "doctor", Short: "Checks what a configuration needs of the world, and says what to fix", Args: cobra.NoArgs,
		Long: `
Checks the configuration, whether each DNS server answers, whether the store can be
written and has room, whether Redis answers, and whether the SMTP server lets it
sign in. If Caddy runs, for which sites it
could get no certificate. Of each Ghost: whether it answers,
accepts its key and is the publication of the site's hosts, and whether its webhook
events arrive. By the routes of the configuration, also while Caddy does not run:
whether Ghost's pages and its admin are reached, and each directive gets its requests.
These go through all handlers, and to what they proxy. Then whether the repositories of themes can be read, and whether
proxies are trusted.

Run it as the user that Caddy runs as, and with the same environment. To try the
webhook events it adds a tag and a webhook in Ghost, and removes both again. For
that Ghost tells caches in front of it to forget the publication's pages.

The exit code is 1 if a check failed. Warnings do not change it.
`,
	}
	addConfigFlags(command)
	asJSON := command.Flags().Bool("json", false, "Print one JSON object, for scripts")
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer cancel()
		context.AfterFunc(ctx, cancel) // a second Ctrl-C does not wait until what was made in Ghost is removed
		out := cmd.OutOrStdout()
		report := doctor.Report{Results: []doctor.Result{}}
		waiting := new(waitingLine)
		defer waiting.stop()
		var written error
		tell := func(r doctor.Result) {
			waiting.stop()
			report.Add(r)
			if !*asJSON {
				written = errors.Join(written, printResult(out, r, onTerminal(out)))
			}
		}
		begin := func(subject string) { waiting.start(cmd.ErrOrStderr(), "Checking "+printable(subject)+" …") }
		var checked doctor.Config
		text, file, err := loadConfig(cmd)
		if err == nil {
			checked, err = caddymodule.Needs(text)
		}
		if err == nil {
			var running *runningCaddy
			running, err = runningWith(text)
			checked.IsRunning, checked.RunningStore = running.isRunning, running.storeAt
			checked.WithoutCertificate = func(ctx context.Context) (map[string]trouble.Reason, error) {
				return running.inState(ctx, trouble.CertificateFailing)
			}
		}
		if err != nil {
			tell(doctor.Result{Subject: "configuration", Status: doctor.Failed, Message: provisioning.ReplaceAllString(err.Error(), "")})
		} else {
			tell(doctor.Result{Subject: "configuration", Status: doctor.OK, Message: file + " is valid"})
			doctor.Run(ctx, checked, begin, tell)
		}
		if *asJSON {
			written = printJSON(out, report)
		} else {
			_, err := fmt.Fprintln(out, report)
			written = errors.Join(written, err)
		}
		if written != nil {
			return fmt.Errorf("printing the results: %w", written)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted: not everything was checked")
		}
		if report.Failed > 0 {
			cmd.SilenceErrors = true
			return errors.New(report.String())
		}
		return nil
	}
	return command
}

// provisioning matches how Caddy says where in its own modules an error is, in front of
// ours, which has the line.
var provisioning = regexp.MustCompile(`^.*provision (?:lychgate|http\.handlers\.\w+|tls\.permission\.lychgate): `)

// colors are those of a terminal (ECMA-48, section 8.3.117).
var colors = map[doctor.Status]string{doctor.OK: "\x1b[32m", doctor.Warning: "\x1b[33m", doctor.Failed: "\x1b[31m"}

// printResult prints one line.
func printResult(out io.Writer, r doctor.Result, colored bool) error {
	status := fmt.Sprintf("%-7s", r.Status)
	if colored {
		status = colors[r.Status] + status + "\x1b[0m"
	}
	line := r.Subject + ": " + strings.TrimSuffix(strings.Join(strings.Fields(r.Message), " "), ".") + "."
	if r.Fix != "" {
		line += " " + strings.ToUpper(r.Fix[:1]) + r.Fix[1:] + "."
	}
	_, err := fmt.Fprintf(out, "%s  %s\n", status, printable(line))
	return err
}
