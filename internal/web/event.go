package web

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
)

//go:embed event.js
var eventSource []byte

//go:embed event.d.ts
var eventTypes []byte

// EventOptions are what the script of an event's page has to know.
type EventOptions struct {
	Events       string `json:"events"` // the path of the list of events
	Registration bool   `json:"registration"`
	Button       string `json:"button"` // the path of the inbox button, "" for none
}

// optionsLine is where the script has its options.
var optionsLine = regexp.MustCompile(`(?m)^const site = .*$`)

var eventScript = withoutSpace(minified(eventSource))

// styleText is the style of the script, and styleSpace the space in it that means nothing.
var (
	styleText  = regexp.MustCompile("(?s)replaceSync\\(`.*?`\\)")
	styleSpace = regexp.MustCompile(`\s*([{};,])\s*`)
)

// withoutSpace leaves out space of the script's style.
func withoutSpace(script []byte) []byte {
	return styleText.ReplaceAllFunc(script, func(style []byte) []byte { return styleSpace.ReplaceAll(style, []byte("$1")) })
}

// EventScript is the script that draws an event on its page and registers readers.
func EventScript(options EventOptions) []byte {
	text, err := json.Marshal(options) // which escapes U+2028 and what could end a script element
	if err != nil {
		panic(err) // strings always encode
	}
	return optionsLine.ReplaceAllLiteral(eventScript, append([]byte("const site = "), append(text, ';')...))
}

// EventTypes are the types of that script and of an event, for TypeScript.
func EventTypes() []byte { return bytes.Clone(eventTypes) }
