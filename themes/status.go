package themes

import "fmt"

// Status is what the Manifest Status column reads: a count of warnings that
// includes the errors, unless there is no finding.
func Status(findings int) string {
	if findings == 0 {
		return "Valid"
	}
	return fmt.Sprintf("%d warnings", findings)
}
