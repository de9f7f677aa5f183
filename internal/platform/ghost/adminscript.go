package ghost

import (
	"encoding/json"
	"net/url"
	"slices"
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
	source, keys := config, []string{"clientExtensions", "script", "src"}
	for i, key := range keys {
		found, ok := find(response, source, key)
		switch value := nested(keys[i+1:], script); {
		case !ok:
			return nil, false
		case found.isNone():
			return insert(response, source, inJSON(key)+":"+value), true
		case isNull(response, found):
			return replace(response, found, value), true
		}
		source = found
	}
	var theirs string
	if json.Unmarshal(response[source.begin:source.end], &theirs) != nil {
		return nil, false
	}
	if theirs != "" {
		script += "#then=" + url.QueryEscape(theirs)
	}
	return replace(response, source, inJSON(script)), true
}

// nested is a text in JSON, in an object for each of some keys.
func nested(keys []string, text string) string {
	value := inJSON(text)
	for _, key := range slices.Backward(keys) {
		value = "{" + inJSON(key) + ":" + value + "}"
	}
	return value
}

func isNull(text []byte, at span) bool { return string(text[at.begin:at.end]) == "null" }

func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(quoted)
}
