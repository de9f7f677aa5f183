package command

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A log of a command that takes long shows at once what it does, and then that it
// goes on.
func TestProgressOffTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out, false, "Importing", "members")
		time.Sleep(progressInterval + 1)
		p.set(1_200, 5_000)
		time.Sleep(progressInterval)
		p.set(1_300, 0)
		time.Sleep(progressInterval)
		p.end()
		want := "Importing …\n" +
			"Importing: 0 members so far\n" +
			"Importing: 1,200 of 5,000 members so far\n" +
			"Importing: 1,300 members so far\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("out.String (-want +got):\n%s", diff)
		}
	})
}
