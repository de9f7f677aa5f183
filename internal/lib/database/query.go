package database

import (
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
)

// Query is a statement that is put together of parts, with its arguments.
type Query struct {
	Text string
	Args []any
}

// Add adds a part, whose question marks stand for arguments.
func (q *Query) Add(part string, args ...any) {
	for _, arg := range args {
		q.Args = append(q.Args, arg)
		part = strings.Replace(part, "?", "$"+strconv.Itoa(len(q.Args)), 1)
	}
	q.Text += part
}

// AddIn adds the condition that a column has one of some texts, at least one.
func (q *Query) AddIn(column string, texts []string) {
	q.Add(column + ` IN (`)
	for i, text := range texts {
		q.Add(strings.Repeat(", ", min(i, 1))+"?", text)
	}
	q.Add(`)`)
}

// AddRow adds a row of values, after a comma unless it is the first.
func (q *Query) AddRow(isFirst bool, args ...any) {
	if !isFirst {
		q.Add(", ")
	}
	q.Add("("+strings.Repeat("?, ", len(args)-1)+"?)", args...)
}

// maxWords bounds the words of a search.
const maxWords = 8

// Searchable is what a column has of a text for AddSearch: the text in lower case, as earlier releases keep and search
// it, and as it is typed without accents (see [fold.Text]).
func Searchable(text string) string {
	lower, folded := strings.ToLower(text), fold.Text(text)
	if lower == folded {
		return lower
	}
	return lower + "\n" + folded
}

// AddSearch adds the condition that a column of Searchable texts has each word of a search, with accents or without.
func (q *Query) AddSearch(column, search string) {
	words := strings.Fields(search)
	for _, word := range words[:min(len(words), maxWords)] {
		lower, folded := "%"+likeEscaper.Replace(strings.ToLower(word))+"%", "%"+likeEscaper.Replace(fold.Text(word))+"%"
		if lower == folded {
			q.Add(` AND `+column+` LIKE ? ESCAPE '!'`, lower)
		} else {
			q.Add(` AND (`+column+` LIKE ? ESCAPE '!' OR `+column+` LIKE ? ESCAPE '!')`, lower, folded)
		}
	}
}

var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "\x00", "")
