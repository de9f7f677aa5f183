package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// addConfigFlags adds the flags that loadConfig reads.
func addConfigFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringP("config", "c", "", "Configuration file (default: the Caddyfile in this folder)")
	cmd.PersistentFlags().StringP("adapter", "a", "", "Name of the configuration's adapter, if it is not JSON or a Caddyfile")
}

// text is JSON, whatever the adapter.
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

// configuration is what is Lychgate's in a configuration.
type configuration struct {
	*config.Config
	apis apiServers
	text []byte // all of it, in JSON
}

// readConfig reads the configuration that the flags name.
func readConfig(cmd *cobra.Command) (*configuration, error) {
	text, _, err := loadConfig(cmd)
	if err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if parsed.Apps.Lychgate == nil {
		return nil, config.ErrNoSite
	}
	of := &configuration{Config: parsed.Apps.Lychgate, text: text}
	servers := parsed.Apps.HTTP.Servers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server := servers[name]
		if _, found := membersPath(server.Routes); found {
			server.httpPort = cmp.Or(parsed.Apps.HTTP.HTTPPort, caddyhttp.DefaultHTTPPort)
			server.httpsPort = cmp.Or(parsed.Apps.HTTP.HTTPSPort, caddyhttp.DefaultHTTPSPort)
			of.apis = append(of.apis, server)
		}
	}
	return of, nil
}

// openDatabase opens the store of a configuration, and returns its file, empty for
// PostgreSQL.
func openDatabase(cmd *cobra.Command, of *configuration, mayMake bool) (db *database.DB, file string, err error) {
	kind, source, err := of.Store.Resolve(caddymodule.Placeholders(), caddymodule.StoreFile())
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
