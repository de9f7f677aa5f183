package command_test

import "cmp"

// twoSites is a Caddyfile with the sites daily and weekly.
type twoSites struct {
	store    string
	global   string // global options
	lychgate string // more options of lychgate
	platform string // of daily; default: none
	daily    string // more options of the site
	address  string // default: http://localhost:8080
}

func (s twoSites) caddyfile() string {
	return `{
	` + s.global + `
	lychgate {
		store ` + s.store + `
		` + s.lychgate + `
		site daily {
			hosts localhost
			platform ` + cmp.Or(s.platform, "none") + `
			` + s.daily + `
		}
		site weekly {
			hosts 127.0.0.1
			platform none
		}
	}
}
` + cmp.Or(s.address, "http://localhost:8080") + ` {
	members_api
}
`
}
