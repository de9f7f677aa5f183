package ghosttest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A test or benchmark that is given half a line says so, instead of asking a
// Ghost that is not there.
func TestFromEnv(t *testing.T) {
	given := &Ghost{URL: "http://127.0.0.1:2368/blog", Key: "1:ab", PID: 42}
	for name, test := range map[string]struct {
		value   string
		want    *Ghost
		problem string
	}{
		"the line":       {"LYCHGATE_TEST_GHOST=http://127.0.0.1:2368/blog 1:ab 42\n", given, ""},
		"its value":      {"http://127.0.0.1:2368/blog 1:ab 42", given, ""},
		"not set":        {"", nil, ""},
		"without a pid":  {"http://127.0.0.1:2368 1:ab", nil, `LYCHGATE_TEST_GHOST is "http://127.0.0.1:2368 1:ab": write the line that e2e/ghost/start prints`},
		"an address":     {"http://127.0.0.1:2368", nil, `LYCHGATE_TEST_GHOST is "http://127.0.0.1:2368": write the line that e2e/ghost/start prints`},
		"only its start": {"LYCHGATE_TEST_GHOST=", nil, `LYCHGATE_TEST_GHOST is "LYCHGATE_TEST_GHOST=": write the line that e2e/ghost/start prints`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LYCHGATE_TEST_GHOST", test.value)
			got, err := FromEnv()
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
