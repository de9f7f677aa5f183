package database_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// A query counts its arguments over all parts, and a search has eight words at most, in which
// nothing stands for other text.
func TestQueryCountsArgumentsOverAllParts(t *testing.T) {
	var q database.Query
	q.Add(`SELECT 1 FROM events WHERE site = ? AND `, "daily")
	q.AddIn("id", []string{"a", "b"})
	q.AddSearch("name", "100%_o! \x00x"+strings.Repeat(" a", 10))
	var text strings.Builder
	text.WriteString(`SELECT 1 FROM events WHERE site = $1 AND id IN ($2, $3)`)
	for n := range 8 {
		fmt.Fprintf(&text, ` AND name LIKE $%d ESCAPE '!'`, n+4)
	}
	want := database.Query{Text: text.String(), Args: []any{"daily", "a", "b", "%100!%!_o!!%", "%x%", "%a%", "%a%", "%a%", "%a%", "%a%", "%a%"}}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("the query (-want +got): %s", diff)
	}
}
