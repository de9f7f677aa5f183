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

// readKey reads the key from standard input, if the flags say so.
func (f *siteFlags) readKey() error {
	switch f.platform.AdminKey {
	case "":
		return nil
	case "-":
	default: // which a list of processes, and a shell's history, would have
		return errors.New("--admin-key takes - alone, and reads the key from standard input, as in: echo \"$KEY\" | caddy lychgate site …")
	}
	line, err := readLine(f.cmd.InOrStdin())
	if line == "" {
		return errors.Join(errors.New("--admin-key - reads the key from standard input, which has none: write it there, as in: echo \"$KEY\" | caddy lychgate site …"), err)
	}
	f.platform.AdminKey = line
	return nil
}

// readLine trims the space around the line.
func readLine(from io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(from, 64<<10)).ReadString('\n')
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
)

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
