package config

import (
	"strings"
)

// Warning is something that may be meant but seldom is. Its fields are for a log.
type Warning struct {
	Message string
	Fields  []Field
}

// Field is a value of a [Warning]: a string, or a list of strings.
type Field struct {
	Name  string
	Value any
}

// NewWarning takes fields as in a log line: each name, and then its value.
func NewWarning(message string, fields ...any) Warning {
	w := Warning{Message: message}
	for i := 0; i < len(fields); i += 2 {
		w.Fields = append(w.Fields, Field{Name: fields[i].(string), Value: fields[i+1]})
	}
	return w
}

func (w Warning) String() string {
	var said []string
	for _, field := range w.Fields {
		said = append(said, strings.ReplaceAll(field.Name, "_", " ")+": "+textOf(field.Value))
	}
	return w.Message + " (" + strings.Join(said, ", ") + ")"
}

func textOf(value any) string {
	if list, ok := value.([]string); ok {
		return "[" + strings.Join(list, " ") + "]"
	}
	return value.(string)
}
