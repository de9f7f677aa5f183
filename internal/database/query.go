package database

import (
	"strconv"
	"strings"
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

// AddSearch adds the condition that a column, which is in lower case, has each word of a search.
func (q *Query) AddSearch(column, search string) {
	words := strings.Fields(strings.ToLower(search))
	for _, word := range words[:min(len(words), maxWords)] {
		q.Add(` AND `+column+` LIKE ? ESCAPE '!'`, "%"+likeEscaper.Replace(word)+"%")
	}
}

var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "\x00", "")
