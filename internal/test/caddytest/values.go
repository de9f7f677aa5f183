package caddytest

import (
	"fmt"
	"regexp"
)

// Values are what a Caddyfile has in the places of names: the value of "dns" for {{dns}}.
type Values map[string]string

var place = regexp.MustCompile(`\{\{(\w+)\}\}`)

// Fill puts the values into a Caddyfile. A place without a value is an error.
func (v Values) Fill(caddyfile string) (string, error) {
	var err error
	filled := place.ReplaceAllStringFunc(caddyfile, func(found string) string {
		value, ok := v[found[2:len(found)-2]]
		if !ok {
			err = fmt.Errorf("no value for %s", found)
		}
		return value
	})
	return filled, err
}
