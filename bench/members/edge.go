package main

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/lychgate/caddy-lychgate"
)

// keys is how many integration keys the edge has.
const keys = 100

func integrationKey(n int) string { return fmt.Sprintf("key-%03d-0123456789abcdef0123456789abcdef", n) }

// edge is a Caddy in this process.
type edge struct {
	folder               string
	apiPort, respondPort int
}

func newEdge(folder string) (*edge, error) {
	e := &edge{folder: folder}
	for _, port := range []*int{&e.apiPort, &e.respondPort} {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*port = listener.Addr().(*net.TCPAddr).Port
		defer listener.Close()
	}
	return e, nil
}

// load has Caddy serve members from a store, with a platform, and answer with
// this body at the other port.
func (e *edge) load(store, platform, body string) error {
	var integrations strings.Builder
	for n := range keys {
		fmt.Fprintf(&integrations, "integration caller-%d {\n key %s\n}\n", n, integrationKey(n))
	}
	// The allowance is out of the way, but counted.
	text := fmt.Sprintf(`{
	admin off
	persist_config off
	storage file_system %s/data
	default_bind 127.0.0.1
	grace_period 5s
	log {
		output discard
	}
	lychgate {
		store %s
		site bench {
			hosts 127.0.0.1
			platform %s
			%s
		}
	}
}
http://127.0.0.1:%d {
	members_api {
		limit 65535 100ms
	}
}
http://127.0.0.1:%d {
	respond `+"`%s`"+`
}
`, e.folder, store, platform, integrations.String(), e.apiPort, e.respondPort, body)
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return errors.Join(err, fmt.Errorf("%v", warnings))
	}
	return caddy.Load(config, true)
}

func (e *edge) stop() { caddy.Stop() }
