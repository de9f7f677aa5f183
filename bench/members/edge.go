package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/caddyserver/caddy/v2"

	_ "github.com/lychgate/caddy-lychgate"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
)

// keys is how many integration keys the edge has.
const keys = 100

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
		fmt.Fprintf(&integrations, "integration caller-%d {\n key %s\n}\n", n, benchtest.IntegrationKey(n))
	}
	// The allowance is out of the way, but counted.
	return inprocess.Load(fmt.Sprintf(`{
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
`, e.folder, store, platform, integrations.String(), e.apiPort, e.respondPort, body))
}

func (e *edge) stop() { caddy.Stop() }
