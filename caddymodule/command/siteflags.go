package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// siteFlags are those that say what a site is.
type siteFlags struct {
	cmd      *cobra.Command
	hosts    *[]string
	platform config.Platform
	fromCSV  *string

	staffIntegrations onOff
	registration      onOff
	mail              config.Mail
	labels            *[]string
}

func addSiteFlags(cmd *cobra.Command) *siteFlags {
	f := &siteFlags{cmd: cmd}
	f.hosts = cmd.Flags().StringSlice("hosts", nil, "Host names at which the site is live, with commas between them")
	cmd.Flags().StringVar(&f.platform.Kind, "platform", "", "Publishing platform: none or ghost")
	for _, option := range f.platform.Options() {
		cmd.Flags().StringVar(option.Value, flagOf(option), "", option.Help)
	}
	f.registration = true
	cmd.Flags().Var(&f.staffIntegrations, "staff-integrations", "Let owners and administrators manage integrations on the desk: --staff-integrations=on, or =off")
	cmd.Flags().Var(&f.registration, "registration", "Let readers register for the site's events: --registration=off, or =on")
	for _, name := range []string{"staff-integrations", "registration"} {
		cmd.Flags().Lookup(name).NoOptDefVal = "on"
	}
	cmd.Flags().StringVar(&f.mail.URL, "mail", "", "Server for the site's own mails, or off for none; - reads its URL from standard input, behind the key if that is read too (default: as all sites)")
	cmd.Flags().StringVar(&f.mail.From, "mail-from", "", "Address that the site's own mails are from, such as 'The Daily <events@example.com>'")
	f.labels = cmd.Flags().StringSlice("label", nil, "Label of the site, such as the tenant's name; several with commas between them")
	return f
}

func flagOf(option config.PlatformOption) string { return strings.ReplaceAll(option.Name, "_", "-") }

// onOff is a flag that is written as in a Caddyfile.
type onOff bool

func (f *onOff) String() string {
	if *f {
		return "on"
	}
	return "off"
}

// Set also takes what other flags take for a truth value, such as true.
func (f *onOff) Set(text string) error {
	switch text {
	case "on", "off":
		*f = text == "on"
		return nil
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("write on or off")
	}
	*f = onOff(is)
	return nil
}

func (*onOff) Type() string { return "on|off" }

// readSecrets reads the key, and the URL for mails, from standard input, if the flags say so.
func (f *siteFlags) readSecrets() error {
	in := bufio.NewReader(io.LimitReader(f.cmd.InOrStdin(), 64<<10))
	read := func(flag, what, variable string, value *string) error {
		example := "echo \"$" + variable + "\" | caddy lychgate site …"
		switch *value {
		case "":
			return nil
		case "-":
		default: // which a list of processes, and a shell's history, would have
			return fmt.Errorf("%s takes - alone, and reads %s from standard input, as in: %s", flag, what, example)
		}
		line, err := lineOf(in)
		if line == "" {
			return errors.Join(fmt.Errorf("%s - reads %s from standard input, which has none: write it there, as in: %s", flag, what, example), err)
		}
		*value = line
		return nil
	}
	if err := read("--admin-key", "the key", "KEY", &f.platform.AdminKey); err != nil || f.mail.URL == "off" {
		return err
	}
	return read("--mail", "the URL", "SMTP_URL", &f.mail.URL)
}

// readLine trims the space around the line.
func readLine(from io.Reader) (string, error) {
	return lineOf(bufio.NewReader(io.LimitReader(from, 64<<10)))
}

func lineOf(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// checkComplete says which flags a new site needs.
func (f *siteFlags) checkComplete() error {
	switch {
	case len(*f.hosts) == 0:
		return errors.New("say at which hosts the site is live, as in: --hosts news.example.com,www.news.example.com")
	case f.platform.Kind == "":
		return errors.New("say where its members are: --platform ghost --url http://127.0.0.1:2368 --admin-key -, or --platform none for the store alone")
	case f.platform.Kind == "ghost" && (f.platform.URL == "" || f.platform.AdminKey == ""):
		return errors.New("--platform ghost needs --url http://127.0.0.1:2368, and --admin-key - with the key of a custom integration in Ghost's settings on standard input")
	}
	return f.checkKind()
}

// checkKind refuses a platform that is none.
func (f *siteFlags) checkKind() error {
	if kind := f.platform.Kind; f.cmd.Flags().Changed("platform") && kind != "none" && kind != "ghost" {
		return fmt.Errorf("--platform %q: write none, or ghost with --url and --admin-key", kind)
	}
	return nil
}

// flagNames are those of the fields of a site, with what only the admin API takes left out.
var flagNames = strings.NewReplacer(
	", or write null to take it away", "", ` such as ["news.example.com"]`, " such as news.example.com",
	": platform.admin_key:", ": --admin-key:", ": platform.url:", ": --url:", ": platform.admin_url:", ": --admin-url:", ": platform.webhooks:", ": --webhooks:",
	": platform.reconcile:", ": --reconcile:", ": platform:", ": --platform:", ": hosts:", ": --hosts:",
	"write platform.admin_key too", "write --admin-key - too", ": labels:", ": --label:",
	": mail.url:", ": --mail:", ": mail.from:", ": --mail-from:",
)

// ownMail is nil for a site whose mails are sent as those of all sites.
func (f *siteFlags) ownMail() *config.Mail {
	if f.mail == (config.Mail{}) {
		return nil
	}
	return &f.mail
}

// isWithoutMail reports whether --mail "" takes away that mails are sent in another way.
func (f *siteFlags) isWithoutMail() bool { return f.cmd.Flags().Changed("mail") && f.mail.URL == "" }

// mailPatch is nil for no change.
func (f *siteFlags) mailPatch() map[string]any {
	patch := make(map[string]any)
	if f.cmd.Flags().Changed("mail") {
		patch["url"] = f.mail.URL
	}
	switch {
	case f.cmd.Flags().Changed("mail-from"):
		patch["from"] = f.mail.From
	case f.mail.URL == "off":
		patch["from"] = nil
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

func (f *siteFlags) patch() (json.RawMessage, error) {
	patch, platform := make(map[string]any), make(map[string]any)
	if f.cmd.Flags().Changed("hosts") {
		patch["hosts"] = *f.hosts
	}
	if f.cmd.Flags().Changed("staff-integrations") {
		patch["staff_integrations"] = f.staffIntegrations
	}
	if f.cmd.Flags().Changed("label") {
		patch["labels"] = *f.labels
	}
	if f.cmd.Flags().Changed("registration") {
		patch["registration"] = f.registration
	}
	if mail := f.mailPatch(); mail != nil {
		patch["mail"] = mail
		if f.isWithoutMail() {
			patch["mail"] = nil
		}
	}
	isOther := f.cmd.Flags().Changed("platform")
	if isOther {
		platform["kind"] = f.platform.Kind
	}
	for _, option := range f.platform.Options() {
		switch {
		case f.cmd.Flags().Changed(flagOf(option)):
			platform[option.Name] = *option.Value
		case isOther: // nothing of the one before fits
			platform[option.Name] = nil
		}
	}
	if len(platform) > 0 {
		patch["platform"] = platform
	}
	if len(patch) == 0 {
		return nil, errors.New("say what to change, such as --hosts news.example.com: caddy lychgate site update --help lists the flags")
	}
	return json.Marshal(patch)
}
