package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/spreadsheet"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// csvColumns are those that a CSV file of sites may have.
var csvColumns = []string{"name", "hosts", "platform", "url", "admin_url", "admin_key", "webhooks", "reconcile", "staff_integrations", "registration", "mail", "mail_from", "labels"}

// csvBatch is how many sites are added in one step at most. Other writers of SQLite wait
// meanwhile.
const csvBatch = 200

// csvSite is a site of a CSV file.
type csvSite struct {
	line int
	sites.Site
}

// mistakes are those of a CSV file, one of a line.
type mistakes map[int]string

// maxMistakes is how many are shown at once.
const maxMistakes = 20

func (m *mistakes) add(line int, text string) {
	if *m == nil {
		*m = make(mistakes)
	}
	if _, ok := (*m)[line]; !ok {
		(*m)[line] = fmt.Sprintf("line %d: %s", line, text)
	}
}

// err is nil if there are none.
func (m mistakes) err() error {
	lines := slices.Sorted(maps.Keys(m))
	switch {
	case len(lines) == 0:
		return nil
	case len(lines) == 1:
		return errors.New(m[lines[0]])
	}
	text := []string{countOf(len(lines), "line") + " are wrong:"}
	for _, line := range lines[:min(len(lines), maxMistakes)] {
		text = append(text, m[line])
	}
	if more := len(lines) - maxMistakes; more > 0 {
		text = append(text, "and "+countOf(more, "line")+" more")
	}
	return errors.New(strings.Join(text, "\n"))
}

// addFromCSV adds the sites of a CSV file.
func (s *sitesStore) addFromCSV(ctx context.Context, out io.Writer, flags *siteFlags) (err error) {
	name, from := "standard input", flags.cmd.InOrStdin()
	if *flags.fromCSV != "-" {
		name = *flags.fromCSV
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // only read
		from = file
	}
	var wrong mistakes
	list, err := s.readCSV(from, &wrong)
	var missing []csvSite
	if err == nil {
		missing, err = s.missing(ctx, list, &wrong)
	}
	if err = errors.Join(wrong.err(), err); err != nil {
		return fmt.Errorf("nothing was added: %s, %w", name, err)
	}
	there := len(list) - len(missing)
	p := startProgress("Adding "+countOf(len(list), "site"), "sites")
	added := 0
	for batch := range batches(missing) {
		if err = s.sites.Add(ctx, asSites(batch)...); err != nil {
			break
		}
		added += len(batch)
		p.set(there+added, len(list))
	}
	p.end()
	fmt.Fprintf(out, "%s added, %s were there already.\n", countOf(added, "site"), humanize.Comma(int64(there)))
	if err != nil {
		return fmt.Errorf("%w; the sites from line %d of %s on were not added: fix that, and add the same file again", explainSites(err), missing[added].line, name)
	}
	return nil
}

// batches splits sites into those of a step each, in their order.
func batches(list []csvSite) iter.Seq[[]csvSite] {
	return func(yield func([]csvSite) bool) {
		for begin := 0; begin < len(list); {
			end, hosts := begin+1, len(list[begin].Hosts)
			for end < len(list) && end-begin < csvBatch && hosts+len(list[end].Hosts) <= sites.MaxHosts {
				hosts += len(list[end].Hosts)
				end++
			}
			if !yield(list[begin:end]) {
				return
			}
			begin = end
		}
	}
}

func asSites(list []csvSite) []sites.Site {
	plain := make([]sites.Site, len(list))
	for i, site := range list {
		plain[i] = site.Site
	}
	return plain
}

// missing are the sites of a file that the store does not have. It adds the lines that do not go
// with what it has to wrong.
func (s *sitesStore) missing(ctx context.Context, list []csvSite, wrong *mistakes) (missing []csvSite, err error) {
	byName, byHost := make(map[string]*csvSite), make(map[string]*csvSite)
	for i := range list {
		byName[list[i].Name] = &list[i]
		for _, host := range list[i].Hosts {
			byHost[host] = &list[i]
		}
	}
	there := make(map[string]bool)
	for kept, err := range s.sites.All(ctx) {
		if err != nil {
			return nil, err
		}
		there[kept.Name] = true
		if site := byName[kept.Name]; site != nil && !isSame(kept, site.Site) {
			wrong.add(site.line, "there is a site "+site.Name+" with other settings: change it with caddy lychgate site update")
		}
		for _, host := range kept.Hosts {
			if site := byHost[host]; site != nil && site.Name != kept.Name {
				wrong.add(site.line, fmt.Sprintf("host %s of site %s already belongs to site %s", host, site.Name, kept.Name))
			}
		}
	}
	return slices.DeleteFunc(list, func(site csvSite) bool { return there[site.Name] }), nil
}

// isSame reports whether a site is kept just as another would be.
func isSame(kept, site sites.Site) bool {
	return kept.Locked == nil && slices.Equal(kept.Hosts, site.Hosts) && slices.Equal(kept.Labels, site.Labels) && string(kept.Settings) == string(site.Settings) &&
		(len(kept.Secrets) == 0 && len(site.Secrets) == 0 || reflect.DeepEqual(kept.Secrets, site.Secrets))
}

// readCSV reads and checks all sites of a file (RFC 4180). It adds lines with a wrong site to wrong, and goes on.
func (s *sitesStore) readCSV(from io.Reader, wrong *mistakes) ([]csvSite, error) {
	reader, err := spreadsheet.NewReader(from, "")
	if err != nil {
		return nil, err
	}
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("it is empty: its first line names the columns, such as %s", strings.Join(csvColumns, ","))
	}
	if err != nil {
		return nil, err
	}
	header = slices.Clone(header)
	for i, column := range header {
		header[i] = strings.TrimSpace(column)
		if !slices.Contains(csvColumns, header[i]) {
			return nil, fmt.Errorf("line 1: there is no column %q: known are %s", column, strings.Join(csvColumns, ", "))
		}
		if slices.Contains(header[:i], header[i]) {
			return nil, fmt.Errorf("line 1: the column %s is given twice", header[i])
		}
	}
	var list []csvSite
	seen, owners := make(map[string]int), make(map[string]string)
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		line := reader.Line()
		site, err := siteOfRow(header, row)
		if err != nil {
			wrong.add(line, err.Error())
			continue
		}
		if other, twice := seen[site.Name]; twice {
			wrong.add(line, fmt.Sprintf("site %s is in line %d too", site.Name, other))
			continue
		}
		prepared, err := s.Prepare(site)
		if err != nil {
			wrong.add(line, err.Error()) // which has no flags
			continue
		}
		for _, host := range prepared[0].Hosts {
			if owner := owners[host]; owner != "" {
				wrong.add(line, fmt.Sprintf("host %s of site %s belongs to site %s of line %d", host, site.Name, owner, seen[owner]))
			}
			owners[host] = cmp.Or(owners[host], site.Name)
		}
		seen[site.Name] = line
		list = append(list, csvSite{line, prepared[0]})
	}
}

func siteOfRow(header, row []string) (config.NamedSite, error) {
	values := make(map[string]string)
	for i, column := range header {
		values[column] = strings.TrimSpace(row[i])
	}
	isOn := map[string]bool{"staff_integrations": false, "registration": true} // by default
	for column := range isOn {
		switch value := values[column]; value {
		case "":
		case "on", "off":
			isOn[column] = value == "on"
		default:
			return config.NamedSite{}, fmt.Errorf("%s %q: write on or off", column, value)
		}
	}
	// What else may be wrong is said in the same words wherever a site comes from.
	switch {
	case values["hosts"] == "":
		return config.NamedSite{}, fmt.Errorf("site %s has no hosts: write one or more, with spaces between them", values["name"])
	case values["platform"] != "none" && values["platform"] != "ghost":
		return config.NamedSite{}, fmt.Errorf("platform %q of site %s: write none, or ghost with its url and admin_key", values["platform"], values["name"])
	}
	of := &config.Platform{Kind: values["platform"]}
	for _, option := range of.Options() {
		*option.Value = values[option.Name]
	}
	var mail *config.Mail
	if values["mail"]+values["mail_from"] != "" {
		mail = &config.Mail{URL: values["mail"], From: values["mail_from"]}
	}
	return config.NamedSite{
		StaffIntegrations: isOn["staff_integrations"], Registration: new(isOn["registration"]),

		Name: values["name"], Hosts: strings.Fields(values["hosts"]), Labels: strings.Fields(values["labels"]),
		Platform: of, Mail: mail,
	}, nil
}
