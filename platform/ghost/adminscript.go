package ghost

import (
	"encoding/json"
	"net/url"
)

// addScript puts a script into Ghost's answer about its configuration, as an extension of
// Ghost's admin (clientExtensions). For each of the staff who is signed in, the admin puts
// its container and its script into its page. See [platform.AdminScript].
func addScript(answer []byte, script string) ([]byte, bool) {
	if !json.Valid(answer) {
		return nil, false
	}
	config, ok := find(answer, whole(answer), "config")
	if !ok || config.isNone() {
		return nil, false
	}
	extensions, ok := find(answer, config, "clientExtensions")
	switch {
	case !ok:
		return nil, false
	case extensions.isNone():
		return insert(answer, config, `"clientExtensions":{"script":{"src":`+inJSON(script)+`}}`), true
	case isNull(answer, extensions):
		return replace(answer, extensions, `{"script":{"src":`+inJSON(script)+`}}`), true
	}
	extension, ok := find(answer, extensions, "script")
	switch {
	case !ok:
		return nil, false
	case extension.isNone():
		return insert(answer, extensions, `"script":{"src":`+inJSON(script)+`}`), true
	case isNull(answer, extension):
		return replace(answer, extension, `{"src":`+inJSON(script)+`}`), true
	}
	source, ok := find(answer, extension, "src")
	switch {
	case !ok:
		return nil, false
	case source.isNone():
		return insert(answer, extension, `"src":`+inJSON(script)), true
	}
	var theirs *string
	if json.Unmarshal(answer[source.begin:source.end], &theirs) != nil {
		return nil, false
	}
	if theirs != nil && *theirs != "" {
		script += "#then=" + url.QueryEscape(*theirs)
	}
	return replace(answer, source, inJSON(script)), true
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
