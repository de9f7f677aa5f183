package ghost

import (
	"encoding/json"
	"net/url"
)

// addScript puts a script into Ghost's response about its configuration, as an extension of
// Ghost's admin (clientExtensions). For each of the staff who is signed in, the admin puts
// its container and its script into its page. See [platform.AdminScript].
func addScript(response []byte, script string) ([]byte, bool) {
	if !json.Valid(response) {
		return nil, false
	}
	config, ok := find(response, whole(response), "config")
	if !ok || config.isNone() {
		return nil, false
	}
	extensions, ok := find(response, config, "clientExtensions")
	switch {
	case !ok:
		return nil, false
	case extensions.isNone():
		return insert(response, config, `"clientExtensions":{"script":{"src":`+inJSON(script)+`}}`), true
	case isNull(response, extensions):
		return replace(response, extensions, `{"script":{"src":`+inJSON(script)+`}}`), true
	}
	extension, ok := find(response, extensions, "script")
	switch {
	case !ok:
		return nil, false
	case extension.isNone():
		return insert(response, extensions, `"script":{"src":`+inJSON(script)+`}`), true
	case isNull(response, extension):
		return replace(response, extension, `{"src":`+inJSON(script)+`}`), true
	}
	source, ok := find(response, extension, "src")
	switch {
	case !ok:
		return nil, false
	case source.isNone():
		return insert(response, extension, `"src":`+inJSON(script)), true
	}
	var theirs *string
	if json.Unmarshal(response[source.begin:source.end], &theirs) != nil {
		return nil, false
	}
	if theirs != nil && *theirs != "" {
		script += "#then=" + url.QueryEscape(*theirs)
	}
	return replace(response, source, inJSON(script)), true
}

func isNull(text []byte, at span) bool { return string(text[at.begin:at.end]) == "null" }

// inJSON returns a string in JSON.
func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(quoted)
}
