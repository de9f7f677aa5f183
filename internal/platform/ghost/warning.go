package ghost

import (
	"bytes"
	"encoding/json"
	"html"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// warning is one that Ghost's admin shows in a dialog after the upload of a theme, as
// Ghost's own checker of themes (gscan) words them.
type warning struct {
	Fatal    bool      `json:"fatal"`
	Level    string    `json:"level"`
	Rule     string    `json:"rule"`     // HTML
	Details  string    `json:"details"`  // HTML
	Failures []failure `json:"failures"` // each on a line of its own
	Code     string    `json:"code"`
}

type failure struct {
	Ref     string `json:"ref"`     // text; of two with the same the dialog shows one
	Message string `json:"message"` // text
}

// manifestWarning is the code of the edge's warning.
const manifestWarning = "theme-manifest"

// The level is warning: for an error, Ghost's dialog asks whether to activate a theme that has
// errors.
func warningOf(notice *platform.UploadNotice) []byte {
	w := warning{
		Level: "warning", Rule: html.EscapeString(notice.Title), Details: html.EscapeString(notice.Meaning),
		Failures: []failure{}, Code: manifestWarning,
	}
	for _, finding := range notice.Findings {
		w.Failures = append(w.Failures, failure{finding.Where, finding.Message})
	}
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // strings always encode
	}
	return text
}

// addWarning puts a warning before those of the only theme in a response of Ghost's to an
// upload. All else stays as it is, byte for byte. So does a response whose warnings are
// not a list.
func addWarning(response, warning []byte) []byte {
	list, ok := find(response, whole(response), "themes")
	if !ok || list.isNone() {
		return response
	}
	theme := bytes.IndexByte(response[list.begin:list.end], '{')
	if theme < 0 { // the one that was read has another spelling of the key
		return response
	}
	object := span{list.begin + theme, list.end}
	warnings, ok := find(response, object, "warnings")
	if !ok {
		return response
	}
	var others []json.RawMessage
	switch {
	case warnings.isNone():
		return insert(response, object, `"warnings":[`+string(warning)+`]`)
	case decode(response[warnings.begin:warnings.end], &others) != nil:
		return response
	case len(others) == 0: // or null
		return replace(response, warnings, `[`+string(warning)+`]`)
	}
	return replace(response, span{warnings.begin, warnings.begin + 1}, `[`+string(warning)+`,`)
}
