// Package list writes the built-in list of webmails into JavaScript, so that
// the page and the server answer from the same one.
package list

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/lychgate/caddy-lychgate/classifier"
)

// The lines between which the list stands.
const (
	begin = "\tconst list = {\n"
	end   = "\t};\n"
)

// Write replaces the list in a script. It fails if the script has no list, or a webmail has
// characters that would end a string.
func Write(script []byte, webmails []classifier.Webmail) ([]byte, error) {
	head, rest, ok := bytes.Cut(script, []byte(begin))
	if !ok {
		return nil, errors.New(`there is no line "const list = {"`)
	}
	_, tail, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		return nil, errors.New("the list has no end")
	}
	var out bytes.Buffer
	out.Write(head)
	out.WriteString(begin)
	for _, webmail := range webmails {
		row := string(webmail.Provider) + webmail.Name + strings.Join(webmail.Domains, "")
		if strings.ContainsAny(row, "'\\\n") {
			return nil, fmt.Errorf("%s: what would end a string is in %q", webmail.Provider, row)
		}
		fmt.Fprintf(&out, "\t\t%s: ['%s', '%s'],\n", webmail.Provider, webmail.Name, strings.Join(webmail.Domains, " "))
	}
	out.WriteString(end)
	out.Write(tail)
	return out.Bytes(), nil
}
