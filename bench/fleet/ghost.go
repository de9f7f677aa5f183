package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/standin"
)

// ghostTime is how long a stand-in takes for each response.
const ghostTime = 5 * time.Millisecond

// withGhosts writes a file of sites for `caddy lychgate site add --from-csv`. The options are
// those for webhooks and for reconcile, with a comma between them.
func withGhosts(g *standin.Ghosts, sites int, options string) string {
	var text strings.Builder
	fmt.Fprintln(&text, "name,hosts,platform,url,admin_key,webhooks,reconcile")
	for n := range sites {
		fmt.Fprintf(&text, "%[1]s,%[1]s.example,ghost,%[2]s/%[1]s,%[3]s,%[4]s\n", siteName(n), g.URL, standin.AdminKey, options)
	}
	return text.String()
}

// hangSome has so many of all sites hang, spread over them.
func hangSome(g *standin.Ghosts, some, all int) {
	hang := make(map[string]bool)
	for n := range some {
		hang[siteName(n*all/some)] = true
	}
	g.HangIf(func(site string) bool { return hang[site] })
}

func siteName(n int) string { return fmt.Sprintf("site-%d", n) }
