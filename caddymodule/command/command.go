package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/caddymodule/app"
	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/sites"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "lychgate",
		Short: "Manages and backs up what Lychgate keeps, and checks and helps themes",
		Long: `
Lychgate is a Caddy plugin that stands in front of Ghost publications. It looks
up the webmail providers of readers, gives a CRM an API for members, reads theme
manifests, gives staff a desk beside Ghost's admin, and shows readers the events
that staff publish there.

site, theme, integration and members work on the store that the configuration
names, whether or not Caddy runs. Nothing needs a reload: a change of a site is live
within two seconds, and all else at once.

secret seals the keys in the store anew, when the configuration's secret changed.
backup copies the store.

doctor checks what the configuration needs of the world, and says what to fix.

manifest, inbox-button and version need no configuration.
`,
		CobraFunc: func(cmd *cobra.Command) {
			group(cmd, siteCommand(), themeCommand(), integrationCommand(), membersCommand(), secretCommand(), backupCommand(), doctorCommand(), manifestCommand(), buttonCommand(), versionCommand())
			cmd.SetHelpTemplate(cmd.HelpTemplate() + "\nFull documentation is available at:\n" + documentation + "\n")
		},
	})
}

// documentation is where the pages of docs are.
const documentation = "https://github.com/lychgate/caddy-lychgate/tree/main/docs"

// addConfigFlags adds the flags that loadConfig reads.
func addConfigFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringP("config", "c", "", "Configuration file (default: the Caddyfile in this folder)")
	cmd.PersistentFlags().StringP("adapter", "a", "", "Name of the configuration's adapter, if it is not JSON or a Caddyfile")
}

// loadConfig returns the configuration that the flags name, in JSON, and its file.
func loadConfig(cmd *cobra.Command) (text []byte, file string, err error) {
	file, _ = cmd.Flags().GetString("config")
	adapter, _ := cmd.Flags().GetString("adapter")
	caddy.BufferedLog() // never printed: Caddy says the same when it starts
	text, file, _, err = caddycmd.LoadConfig(file, adapter)
	if err == nil && len(text) == 0 {
		err = errors.New("there is no Caddyfile in this folder: name the configuration with --config")
	}
	return text, file, err
}

// addStoreFlags adds the flags that a siteStore is found by.
func addStoreFlags(cmd *cobra.Command) {
	addConfigFlags(cmd)
	cmd.PersistentFlags().String("site", "", "Name of the site (default: the only one)")
}

// siteStore is what a command works on.
type siteStore struct {
	site     string
	declared map[string]*config.Integration
	platform *config.Platform
	locked   error // why its keys cannot be opened
	apiURL   string
	store    *memberstore.SQL
	now      func() time.Time // by the store's clock
	file     string           // of SQLite; empty for PostgreSQL
}

func (s *siteStore) keys() *members.KeyService {
	return &members.KeyService{Store: s.store, Now: time.Now}
}

func (s *siteStore) printKey(out io.Writer, key string) {
	fmt.Fprintf(out, "API URL: %s\nKey:     %s\n", s.apiURL, key)
}

func (s *siteStore) unknown(err error, name string) error {
	switch {
	case !errors.Is(err, members.ErrNotFound):
		return err
	case s.declared[name] != nil && s.declared[name].Key != "":
		return fmt.Errorf("the key of %s is in the configuration: change it there", name)
	}
	return fmt.Errorf("site %s has no integration %s: list shows those that it has", s.site, name)
}

// work is what a command does with the store.
type work func(ctx context.Context, out io.Writer, s *siteStore, args []string) error

// withStore runs work on the store and the site that the flags name. A store that is
// not there yet is made.
func withStore(do work) func(*cobra.Command, []string) error { return openStore(do, true) }

// withStoreThatIs is withStore for work that only reads, so that a path which is
// misspelt is not taken for a store without members.
func withStoreThatIs(do work) func(*cobra.Command, []string) error { return openStore(do, false) }

func openStore(do work, mayMake bool) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		cmd.SilenceUsage = true
		name, _ := cmd.Flags().GetString("site")
		text, _, err := loadConfig(cmd)
		if err != nil {
			return err
		}
		configured, server, err := configOf(text)
		if err == nil && server == nil {
			err = errors.New("the configuration has no members_api directive, so no key would be of use: write members_api into the site's block")
		}
		if err != nil {
			return err
		}
		if name, err = siteNamed(configured, name); err != nil {
			return err
		}
		db, file, err := openDatabase(cmd, configured, mayMake)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		store, err := memberstore.NewSQL(cmd.Context(), db)
		if err != nil {
			return err
		}
		site, locked, err := findSite(cmd.Context(), configured, db, name)
		if err != nil {
			return err
		}
		return do(cmd.Context(), cmd.OutOrStdout(), &siteStore{
			file: file, site: name, declared: site.Integrations, platform: site.Platform, locked: locked, store: store, now: db.Now,
			apiURL: server.url(caddy.NewReplacer().ReplaceKnown(site.Hosts[0], "")),
		}, args)
	}
}

// openDatabase opens the store of a configuration, and returns its file, empty for
// PostgreSQL.
func openDatabase(cmd *cobra.Command, of *config.Config, mayMake bool) (db *database.DB, file string, err error) {
	kind, source, err := of.Store.Resolve(app.Placeholders(), app.StoreFile())
	if err != nil {
		return nil, "", err
	}
	if kind == database.SQLite {
		file = source
	}
	if _, err := os.Stat(file); file != "" && !mayMake && errors.Is(err, fs.ErrNotExist) {
		return nil, "", noStore(database.Place(kind, source))
	}
	waiting := time.AfterFunc(storeWait, func() { fmt.Fprintln(cmd.ErrOrStderr(), "Waiting for the store …") })
	defer waiting.Stop()
	db, err = database.Open(cmd.Context(), kind, source)
	return db, file, err
}

func noStore(place string) error {
	return fmt.Errorf("there is no store at %s: see that store in the configuration is right, and run this in the environment of Caddy; Caddy makes it when it starts", place)
}

// findSite returns a site of the configuration, or of the store: then with why its keys cannot
// be opened, if they cannot.
func findSite(ctx context.Context, of *config.Config, db *database.DB, name string) (site *config.Site, locked, err error) {
	if site := of.Sites[name]; site != nil {
		return site, nil, nil
	}
	keys, err := of.Keyring(app.Placeholders())
	if err != nil {
		return nil, nil, err
	}
	store, err := sites.NewSQL(ctx, db, keys)
	if err != nil {
		return nil, nil, err
	}
	kept, err := store.Find(ctx, name)
	if errors.Is(err, sites.ErrNotFound) {
		err = noSite(of, name)
	}
	if err != nil {
		return nil, nil, err
	}
	site, err = config.FromStore(kept)
	return site, kept.Locked, err
}

func noSite(of *config.Config, name string) error {
	if len(of.Sites) == 0 {
		return fmt.Errorf("there is no site %s: caddy lychgate site list shows those that there are", name)
	}
	return fmt.Errorf("the configuration has no site %s, nor has the store: the configuration has %s", name, strings.Join(of.Names(), ", "))
}

// configOf takes what is Lychgate's out of a configuration, and the first HTTP server that has
// a members_api, nil for none.
func configOf(text []byte) (*config.Config, *apiServer, error) {
	var parsed struct {
		Apps struct {
			Lychgate *config.Config `json:"lychgate"`
			HTTP     struct {
				HTTPPort  uint                  `json:"http_port"`
				HTTPSPort uint                  `json:"https_port"`
				Servers   map[string]*apiServer `json:"servers"`
			} `json:"http"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if parsed.Apps.Lychgate == nil {
		return nil, nil, config.ErrNoSite
	}
	servers := parsed.Apps.HTTP.Servers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server := servers[name]
		var found bool
		if server.path, found = membersPath(server.Routes); found {
			server.httpPort = cmp.Or(parsed.Apps.HTTP.HTTPPort, caddyhttp.DefaultHTTPPort)
			server.httpsPort = cmp.Or(parsed.Apps.HTTP.HTTPSPort, caddyhttp.DefaultHTTPSPort)
			return parsed.Apps.Lychgate, server, nil
		}
	}
	return parsed.Apps.Lychgate, nil, nil
}

// apiServer is what has to be known of one of Caddy's HTTP servers to say where
// its members API is.
type apiServer struct {
	Listen         []string `json:"listen"`
	AutomaticHTTPS struct {
		Disable bool     `json:"disable"`
		Skip    []string `json:"skip"`
	} `json:"automatic_https"`
	TLSPolicies []json.RawMessage `json:"tls_connection_policies"`
	Routes      []any             `json:"routes"`

	path                string
	httpPort, httpsPort uint // of the HTTP app
}

func (s *apiServer) url(host string) string {
	ports := s.ports()
	port := s.httpsPort
	if len(ports) > 0 {
		port = ports[0]
	}
	scheme, usual := "http", uint(80)
	if port != s.httpPort && s.usesTLS(ports) {
		scheme, usual = "https", 443
	}
	if port != usual {
		host = net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10))
	}
	return scheme + "://" + host + s.path
}

func (s *apiServer) ports() (ports []uint) {
	for _, listen := range s.Listen {
		if address, err := caddy.ParseNetworkAddress(listen); err == nil && address.StartPort != 0 {
			ports = append(ports, address.StartPort)
		}
	}
	return ports
}

// usesTLS reports whether the server speaks TLS at ports other than that of HTTP:
// because of a policy, or by automatic HTTPS, as caddyhttp decides it (autohttps.go).
func (s *apiServer) usesTLS(ports []uint) bool {
	switch {
	case len(s.TLSPolicies) > 0:
		return true
	case s.AutomaticHTTPS.Disable:
		return false
	case !slices.ContainsFunc(ports, func(port uint) bool { return port != s.httpsPort }):
		return true
	}
	return slices.ContainsFunc(s.Routes, func(route any) bool {
		return slices.ContainsFunc(hostsOf(route), func(host string) bool { return !slices.Contains(s.AutomaticHTTPS.Skip, host) })
	})
}

func hostsOf(route any) (hosts []string) {
	var parsed struct {
		Match []struct {
			Host []string `json:"host"`
		} `json:"match"`
	}
	text, err := json.Marshal(route)
	if err != nil || json.Unmarshal(text, &parsed) != nil {
		return nil
	}
	for _, set := range parsed.Match {
		hosts = append(hosts, set.Host...)
	}
	return hosts
}

// membersPath looks for the handler members_api in a part of a configuration,
// and returns its path.
func membersPath(part any) (string, bool) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			if path, found := membersPath(element); found {
				return path, true
			}
		}
	case map[string]any:
		if part["handler"] == "members_api" {
			path, ok := part["path"].(string)
			if !ok {
				path = config.DefaultAPIPath
			}
			return path, true
		}
		for _, key := range slices.Sorted(maps.Keys(part)) {
			if path, found := membersPath(part[key]); found {
				return path, true
			}
		}
	}
	return "", false
}

// siteNamed returns the name of a site that may exist, the only one for none.
func siteNamed(of *config.Config, name string) (string, error) {
	names := of.Names()
	switch {
	case of.Sites[name] != nil && len(of.Sites[name].Hosts) > 0:
		return name, nil
	case name == "" && len(names) == 1 && len(of.Sites[names[0]].Hosts) > 0:
		return names[0], nil
	case name != "" && of.Sites[name] == nil:
		return name, nil // of the store, maybe
	case len(names) == 0:
		return "", errors.New("name the site with --site: caddy lychgate site list shows those that there are")
	}
	return "", fmt.Errorf("name one of the configuration's sites with --site: %s", strings.Join(names, ", "))
}
