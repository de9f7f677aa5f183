package edgetest

import (
	"regexp"
)

// What differs from run to run in sites.
var (
	TimeShown = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)
	KeyShown  = regexp.MustCompile(`lg_(\w+)_[0-9a-f]{64}`)
)
