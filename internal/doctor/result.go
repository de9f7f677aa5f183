package doctor

import (
	"fmt"

	"github.com/dustin/go-humanize/english"
)

// Status says how a check ended.
type Status string

// The values of Status.
const (
	OK      Status = "ok"
	Warning Status = "warning" // works, but perhaps not as it is meant
	Failed  Status = "failed"
)

// Result is how one check ended.
type Result struct {
	Subject string `json:"subject"` // what was checked, such as: site daily
	Status  Status `json:"status"`
	Message string `json:"message"`       // what was found
	Fix     string `json:"fix,omitempty"` // what to do; empty if that is nothing
}

// Report is how all checks ended.
type Report struct {
	Results  []Result `json:"results"`
	Failed   int      `json:"failed"`
	Warnings int      `json:"warnings"`
}

// Add adds a result, and counts it.
func (r *Report) Add(result Result) {
	r.Results = append(r.Results, result)
	switch result.Status {
	case Failed:
		r.Failed++
	case Warning:
		r.Warnings++
	}
}

// String sums the report up in a line: "3 checks, 1 failed, 1 warning."
func (r Report) String() string {
	text := english.Plural(len(r.Results), "check", "")
	if r.Failed+r.Warnings == 0 {
		return text + ", nothing to fix."
	}
	if r.Failed > 0 {
		text += fmt.Sprintf(", %d failed", r.Failed)
	}
	if r.Warnings > 0 {
		text += ", " + english.Plural(r.Warnings, "warning", "")
	}
	return text + "."
}

func ok(format string, args ...any) Result {
	return Result{Status: OK, Message: fmt.Sprintf(format, args...)}
}

func warn(message, fix string) Result { return Result{Status: Warning, Message: message, Fix: fix} }

func fail(message, fix string) Result { return Result{Status: Failed, Message: message, Fix: fix} }
