package web

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
)

//go:embed event.js
var eventSource []byte

//go:embed events.js
var eventsSource []byte

//go:embed common.js
var commonSource []byte

//go:embed event.d.ts
var eventTypes []byte

// EventOptions are what the scripts for events have to know.
type EventOptions struct {
	Events       string `json:"events"` // the path of the list of events
	Registration bool   `json:"registration"`
	Fields       bool   `json:"fields"` // whether custom fields are drawn
	Button       string `json:"button"` // the path of the inbox button, "" for none

	// Language is the one language that the script has the texts of, as HTML has it. "" is English.
	Language string `json:"language"`
}

// optionsLine is where the script has its options.
var optionsLine = regexp.MustCompile(`(?m)^const site = .*$`)

// commonLine is where the scripts have what they share.
const commonLine = "\t// common.js\n"

var eventScript, eventsScript = whole(eventSource), whole(eventsSource)

func whole(source []byte) []byte {
	return withoutSpace(minified(bytes.Replace(source, []byte(commonLine), commonSource, 1)))
}

// styleText is the style of the script, and styleSpace the space in it that means nothing.
var (
	styleText  = regexp.MustCompile("(?s)replaceSync\\(`.*?`\\)")
	styleSpace = regexp.MustCompile(`\s*([{};,])\s*`)
)

// withoutSpace leaves out space of the script's style.
func withoutSpace(script []byte) []byte {
	return styleText.ReplaceAllFunc(script, func(style []byte) []byte { return styleSpace.ReplaceAll(style, []byte("$1")) })
}

// phraseLine is the texts of a language.
var phraseLine = regexp.MustCompile(`(?m)^([a-z]{2}): '.*\n`)

// EventScript is the script that draws an event, and registers readers for it.
func EventScript(options EventOptions) []byte {
	options.Language = cmp.Or(options.Language, "en")
	wanted := options.Language
	if wanted == "no" {
		wanted = "nb"
	}
	return withOptions(phraseLine.ReplaceAllFunc(eventScript, func(line []byte) []byte {
		if strings.HasPrefix(string(line), wanted+":") {
			return line
		}
		return nil
	}), options)
}

// EventsScript is the script that draws lists of events.
func EventsScript(options EventOptions) []byte { return withOptions(eventsScript, options) }

func withOptions(script []byte, options EventOptions) []byte {
	text, err := json.Marshal(options) // which escapes U+2028 and what could end a script element
	if err != nil {
		panic(err) // strings always encode
	}
	return optionsLine.ReplaceAllLiteral(script, append([]byte("const site = "), append(text, ';')...))
}

// EventTypes are the types of both scripts and of an event, for TypeScript.
func EventTypes() []byte { return bytes.Clone(eventTypes) }
