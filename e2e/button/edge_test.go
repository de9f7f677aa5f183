package button

import (
	"os"
	"path/filepath"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// zone is what the edge's DNS server knows.
var zone = map[string][]string{
	"workspace.example":    {"workspace.example. 300 IN MX 1 aspmx.l.google.com."},
	"company.example":      {"company.example. 300 IN MX 0 company-example.mail.protection.outlook.com."},
	"live.example":         {"live.example. 300 IN MX 1 aspmx.l.google.com."},
	"live.company.example": {"live.company.example. 300 IN MX 0 company-example.mail.protection.outlook.com."},
	"hotmail.fr":           {"hotmail.fr. 300 IN MX 2 hotmail-com.olc.protection.outlook.com."},
	"own.example":          {"own.example. 300 IN MX 10 mail.own.example."},
	// What a browser makes of bücher.example.
	"xn--bcher-kva.example": {"xn--bcher-kva.example. 300 IN MX 10 mail.protonmail.ch."},
}

const caddyfile = `{
	{{global}}
	lychgate {
		store sqlite {{folder}}/lychgate.db
		resolvers {{dns}}
		site daily {
			hosts localhost
			platform none
		}
	}
}

http://localhost:{{port}} {
	inbox_provider {
		limit 1000 1m
	}
	handle / {
		root {{web}}
		rewrite /demo.html
		file_server
	}
	handle {
		root {{pages}}
		file_server
	}
}
`

// startEdge starts the edge that the tests share.
func startEdge(folder string) (stop func() error, err error) {
	web, err := filepath.Abs("../../internal/web")
	if err != nil {
		return nil, err
	}
	pages = filepath.Join(folder, "pages")
	if err := os.Mkdir(pages, 0o700); err != nil {
		return nil, err
	}
	started, err := caddytest.Start(folder, caddyfile, caddytest.Values{"dns": resolver, "web": web, "pages": pages})
	if err != nil {
		return nil, err
	}
	edge = "http://localhost:" + started.Port
	return started.Stop, nil
}
