package main

import (
	"fmt"
	"net"

	"github.com/caddyserver/caddy/v2"

	_ "github.com/lychgate/caddy-lychgate"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
)

// edge is a Caddy in this process, with two ports in front of one upstream.
type edge struct {
	folder               string
	themePort, plainPort int
}

func newEdge(folder string) (*edge, error) {
	e := &edge{folder: folder}
	for _, port := range []*int{&e.themePort, &e.plainPort} {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*port = listener.Addr().(*net.TCPAddr).Port
		defer listener.Close()
	}
	return e, nil
}

// load has both ports pass requests on to an upstream, one with theme_manifest.
func (e *edge) load(upstream, key string) error {
	return inprocess.Load(fmt.Sprintf(`{
	admin off
	persist_config off
	storage file_system %[1]s/data
	default_bind 127.0.0.1
	grace_period 5s
	log {
		output discard
	}
	lychgate {
		store sqlite %[1]s/lychgate.db
		site bench {
			hosts 127.0.0.1
			platform ghost %[2]s {
				admin_key %[3]s
				webhooks off
			}
		}
	}
}
http://127.0.0.1:%[4]d {
	theme_manifest
	reverse_proxy %[2]s
}
http://127.0.0.1:%[5]d {
	reverse_proxy %[2]s
}
`, e.folder, upstream, key, e.themePort, e.plainPort))
}

func (e *edge) stop() { caddy.Stop() }
