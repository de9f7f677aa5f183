package doctor

import (
	"fmt"
	"time"
)

// maxSkew is how far apart two clocks may be. Ghost takes no token that is older than
// 5 minutes, and its events are taken as long.
const maxSkew = time.Minute

// clocks adds to a result what is wrong with the clock of another machine.
func clocks(r Result, ahead time.Duration) Result {
	switch {
	case ahead.Abs() < maxSkew:
		return r
	case ahead > 0:
		return warn(r.Message+fmt.Sprintf(", but its clock is %s ahead of this machine's", ahead), "let both machines set their clocks by NTP")
	}
	return warn(r.Message+fmt.Sprintf(", but its clock is %s behind this machine's", -ahead), "let both machines set their clocks by NTP")
}
