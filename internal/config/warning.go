package config

import (
	"fmt"
	"slices"
	"strings"
)

// Warning is something that may be meant but seldom is. Its fields are for a log: each name, and then its value, which is
// a string or a list of strings.
type Warning struct {
	Message string
	Fields  []any
}

// NewWarning takes fields as in a log line.
func NewWarning(message string, fields ...any) Warning { return Warning{message, fields} }

func (w Warning) String() string {
	var said []string
	for field := range slices.Chunk(w.Fields, 2) {
		said = append(said, strings.ReplaceAll(fmt.Sprint(field[0]), "_", " ")+": "+fmt.Sprint(field[1]))
	}
	return w.Message + " (" + strings.Join(said, ", ") + ")"
}
