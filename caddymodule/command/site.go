package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

func siteCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "site", Short: "Manages the sites in the store",
		Long: `
Manages the sites in the store, which are served beside those of the configuration.
What is changed is live on all edges within two seconds, without a reload.
`,
	}
	addConfigFlags(root)
	group(root, siteAddCommand(), siteShowCommand(), siteListCommand(), siteUpdateCommand(), siteRemoveCommand())
	return root
}

func siteAddCommand() *cobra.Command {
	add := &cobra.Command{
		Use: "add <name>", Short: "Adds a site, or those of a CSV file",
		Long: `
Adds a site to the store. What was kept under its name by a site of the
configuration, such as members, is its own from then on.

--from-csv adds those of a file, or of standard input for -. Its first line names
the columns, in any order: name, hosts (with spaces between them), platform, url,
admin_url, admin_key, webhooks, reconcile, staff_integrations and registration (on or off),
mail, mail_from, and labels (with spaces between them). The whole file is checked first. A site that is
there already, just as in the file, is left as it is, so that the same file can be
added again.
`,
	}
	flags := addSiteFlags(add)
	flags.fromCSV = add.Flags().String("from-csv", "", "CSV file with the sites to add; - for standard input")
	add.Args = oneUnless("from-csv", "the site")
	add.RunE = withSites(true, func(ctx context.Context, out io.Writer, s *sitesStore, args []string) error {
		if *flags.fromCSV != "" {
			return s.addFromCSV(ctx, out, flags)
		}
		if err := errors.Join(flags.checkComplete(), flags.readSecrets()); err != nil {
			return err
		}
		prepared, err := s.Prepare(config.NamedSite{
			Name: args[0], Hosts: *flags.hosts, Platform: &flags.platform, StaffIntegrations: bool(flags.staffIntegrations), Registration: new(bool(flags.registration)), Mail: flags.ownMail(), Labels: *flags.labels,
		})
		if err != nil {
			return err
		}
		if err := s.sites.Add(ctx, prepared...); err != nil {
			return err
		}
		if s.Sites[args[0]] != nil {
			fmt.Fprintf(out, "Site %s is added. The one of the configuration is served until it is taken out there; what is kept under the name is then this one's.\n", args[0])
			return nil
		}
		fmt.Fprintf(out, "Site %s is added, and live at %s within two seconds.\n", args[0], strings.Join(prepared[0].Hosts, " "))
		return s.warnOfSecret(ctx, flags.cmd.ErrOrStderr(), prepared[0])
	})
	return add
}

// oneUnless wants one argument, which its name says, or a flag instead.
func oneUnless(flag, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		given := cmd.Flags().Changed(flag)
		if given == (len(args) == 0) && len(args) <= 1 {
			return nil
		}
		cmd.SilenceUsage = true
		if given {
			return fmt.Errorf("--%s says what to do, so leave %q out", flag, args[0])
		}
		if len(args) > 1 && onOffOf(args[1]) == "" {
			return fmt.Errorf("name %s alone, and leave %q out: several hosts have commas between them, and no spaces", what, args[1])
		}
		return one(what)(cmd, args)
	}
}

// warnOfSecret says so if a site was sealed with a secret that opens none of the others:
// that of the edges may be another.
func (s *sitesStore) warnOfSecret(ctx context.Context, out io.Writer, added sites.Site) error {
	if len(added.Secrets) == 0 {
		return nil
	}
	const maxCompared = 500
	list, err := s.sites.List(ctx, "", maxCompared)
	for _, kept := range list {
		if kept.Locked != nil {
			fmt.Fprintf(out, "Its keys are sealed with a secret that does not open those of site %s: is it the secret that the edges have?\n", kept.Name)
			break
		}
	}
	return err
}

func siteShowCommand() *cobra.Command {
	show := &cobra.Command{Use: "show <name>", Short: "Shows a site, without its keys", Args: one("the site")}
	asJSON := show.Flags().Bool("json", false, "As the admin API answers")
	show.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, args []string) error {
		kept, err := s.sites.Find(ctx, args[0])
		if errors.Is(err, sites.ErrNotFound) && s.Sites[args[0]] != nil {
			return fmt.Errorf("site %s is in the configuration, not in the store: look there", args[0])
		}
		if err != nil {
			return err
		}
		site := config.ShowSite(kept)
		if *asJSON {
			encoder := json.NewEncoder(out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(site)
		}
		if err := s.print(ctx, out, site); err != nil {
			return err
		}
		return showAdmin(ctx, out, kept)
	})
	return show
}

// print shows a site to people, and what is kept of it.
func (s *sitesStore) print(ctx context.Context, out io.Writer, site config.ShownSite) error {
	integrations, err := s.members.ListIntegrations(ctx, site.Name)
	if err != nil {
		return err
	}
	pending, err := s.members.CountPending(ctx, site.Name)
	if err != nil {
		return err
	}
	var platform config.Platform // of a row that can be read
	if site.Platform != nil {
		platform = *site.Platform
	}
	var names []string
	for _, i := range integrations {
		names = append(names, i.Name)
	}
	var themes []string
	for name, theme := range site.Themes {
		themes = append(themes, name+" from "+theme.Repository.URL)
	}
	slices.Sort(themes)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"Name", site.Name},
		{"Hosts", strings.Join(site.Hosts, " ")},
		{"Labels", strings.Join(site.Labels, " ")},
		{"Platform", strings.TrimSpace(platform.Kind + " " + platform.URL)},
		{"Admin", platform.AdminURL},
		{"Webhooks", platform.Webhooks},
		{"Reconcile", platform.Reconcile},
		{"Themes", strings.Join(themes, ", ")},
		{"Integrations", strings.Join(names, ", ")},
		{"Managed by staff", when(site.StaffIntegrations, "integrations")},
		{"Registration", when(site.Registration != nil && !*site.Registration, "off")},
		{"Mail", mailOf(site)},
		{"Keys", site.Locked},
		{"Not served", site.Problem},
		{"Pending", when(pending > 0, "writes of "+countOf(pending, "member")+" that the platform does not have yet")},
		{"Added", shownTime(site.CreatedAt)},
		{"Changed", shownTime(site.UpdatedAt)},
	} {
		if line[1] != "" {
			fmt.Fprintf(table, "%s:\t%s\n", line[0], printable(line[1]))
		}
	}
	return table.Flush()
}

// mailOf is empty for a site whose mails are sent as those of all sites. The server is a secret.
func mailOf(site config.ShownSite) string {
	switch {
	case site.Mail == nil:
		return ""
	case site.Mail.From == "":
		return site.Mail.URL
	}
	return "from " + site.Mail.From
}

func siteListCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "Lists the sites in the store", Args: cobra.NoArgs,
		Long: `
Lists the sites in the store.

--failing lists the sites in trouble instead, those of the configuration too: what is
wrong, since when, when the platform last took a request, and why. If Caddy runs with
this configuration on this machine, what its edge alone knows is in the list too: hosts
without a certificate, and writes that wait because too many had no response. With
--label it lists those in the store with the label alone.
`,
	}
	failing := list.Flags().Bool("failing", false, "List the sites in trouble, and why")
	labels := list.Flags().StringSlice("label", nil, "Only sites with this label, or one of several")
	asJSON := list.Flags().Bool("json", false, "As the admin API answers, all of them, a site on each line")
	list.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, _ []string) error {
		for _, label := range *labels {
			if err := config.CheckLabel("--label", label); err != nil {
				return err
			}
		}
		if *failing {
			return s.listFailing(ctx, out, *labels, *asJSON)
		}
		if *asJSON {
			all := newSitesJSON(out)
			for kept, err := range s.sites.All(ctx, *labels) {
				if err != nil {
					return err
				}
				all.add(config.ShowSite(kept))
			}
			return all.end()
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tPLATFORM\tHOSTS\tKEYS")
		for kept, err := range s.sites.All(ctx, *labels) {
			if err != nil {
				return err
			}
			site := config.ShowSite(kept)
			kind := "cannot be read"
			if site.Platform != nil {
				kind = site.Platform.Kind
			}
			keys := keysOf(kept)
			if s.Sites[site.Name] != nil {
				keys += "; the configuration's is served"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", site.Name, kind, strings.Join(site.Hosts, " "), keys)
		}
		return table.Flush()
	})
	return list
}

// keysOf says whether a site has keys in the store, and whether they can be opened.
func keysOf(kept sites.Site) string {
	switch {
	case kept.Locked != nil:
		return "cannot be opened"
	case len(kept.Secrets) > 0:
		return "sealed"
	}
	return "none"
}

func siteUpdateCommand() *cobra.Command {
	update := &cobra.Command{
		Use: "update <name>", Short: "Changes a site", Args: one("the site"),
		Long: `
Changes what the flags name of a site; all else stays. --platform changes the
platform as a whole. An empty --webhooks or --reconcile takes the default again.

Two sites exchange their hosts in one step on the admin API.
`,
	}
	flags := addSiteFlags(update)
	force := update.Flags().Bool("force", false, "Change the platform although pending writes are lost")
	update.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, args []string) error {
		if err := errors.Join(flags.checkKind(), flags.readSecrets()); err != nil {
			return err
		}
		patch, err := flags.patch()
		if err != nil {
			return err
		}
		before, err := s.sites.Find(ctx, args[0])
		if err != nil {
			return err
		}
		if err := s.Patch(ctx, map[string]json.RawMessage{args[0]: patch}, *force); err != nil {
			return err
		}
		fmt.Fprintf(out, "Site %s is changed, everywhere within two seconds.\n", args[0])
		if before.Locked != nil && len(config.ShowSite(before).Themes) > 0 {
			fmt.Fprintln(out, "Tokens of its themes could not be opened, and are gone: give them again with caddy lychgate theme add --token -.")
		}
		return nil
	})
	return update
}

func siteRemoveCommand() *cobra.Command {
	remove := &cobra.Command{
		Use: "remove <name>", Short: "Removes a site, and what is kept of it", Args: one("the site"),
		Long: `
Removes a site from the store. It is served no longer at once. What is kept of it is
deleted two minutes later, by Caddy: its members here, its keys and its manifests.
Ghost keeps what it has.

While writes are pending, which Ghost does not have yet, a site is removed only with
--force, and they are lost.
`,
	}
	force := remove.Flags().Bool("force", false, "Remove it although pending writes are lost")
	remove.RunE = withSites(false, func(ctx context.Context, out io.Writer, s *sitesStore, args []string) error {
		if err := s.Remove(ctx, args[0], *force); err != nil {
			return err
		}
		if s.Sites[args[0]] != nil {
			fmt.Fprintf(out, "Site %s is removed from the store. What is kept under its name stays, for the one of the configuration.\n", args[0])
			return nil
		}
		fmt.Fprintf(out, "Site %s is removed. What is kept of it is deleted in two minutes, while Caddy runs.\n", args[0])
		return nil
	})
	return remove
}
