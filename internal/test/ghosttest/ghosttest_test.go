package ghosttest

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A test or benchmark that is given half a line says so, instead of asking a
// Ghost that is not there, and gets none that another process has.
func TestTakenGhostsAreCompleteAndFree(t *testing.T) {
	blog := &Ghost{URL: "http://127.0.0.1:2368/blog", Key: "1:ab", PID: 42}
	other := &Ghost{URL: "http://127.0.0.1:2369", Key: "1:cd", PID: 43}
	const both = "http://127.0.0.1:2368/blog 1:ab 42\nhttp://127.0.0.1:2369 1:cd 43"
	for name, test := range map[string]struct {
		value   string
		busy    *Ghost
		want    *Ghost
		problem string
	}{
		"the line":       {"LYCHGATE_TEST_GHOST=http://127.0.0.1:2368/blog 1:ab 42\n", nil, blog, ""},
		"its value":      {"http://127.0.0.1:2368/blog 1:ab 42", nil, blog, ""},
		"two":            {both, nil, blog, ""},
		"one is busy":    {both, blog, other, ""},
		"not set":        {"", nil, nil, ""},
		"without a pid":  {"http://127.0.0.1:2368 1:ab", nil, nil, `LYCHGATE_TEST_GHOST is "http://127.0.0.1:2368 1:ab": write the line that e2e/ghost/start prints`},
		"an address":     {"http://127.0.0.1:2368", nil, nil, `LYCHGATE_TEST_GHOST is "http://127.0.0.1:2368": write the line that e2e/ghost/start prints`},
		"only its start": {"LYCHGATE_TEST_GHOST=", nil, nil, `LYCHGATE_TEST_GHOST is "LYCHGATE_TEST_GHOST=": write the line that e2e/ghost/start prints`},
	} {
		t.Run(name, func(t *testing.T) {
			if test.busy != nil {
				busy, err := net.Listen("unix", test.busy.lock())
				if err != nil {
					t.Fatalf("net.Listen: %v", err)
				}
				defer busy.Close()
			}
			got, err := take(test.value)
			if got != nil {
				defer taken.Close()
			}
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" || problem != test.problem {
				t.Errorf("%s, %q, want %q", diff, problem, test.problem)
			}
		})
	}
}
