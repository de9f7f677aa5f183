package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An operator gives integrations rate limits of their own, and sees them.
func TestIntegrationLimits(t *testing.T) {
	folder, _, _ := siteFolder(t, "integration form {\nkey a-key-for-trying-0123456789abcdef\nlimit 5 10s\n}\nintegration events {\nlimit 50 1h30m\n}")
	run := func(args ...string) ran {
		got := lychgate(t, folder, append([]string{"integration"}, args...)...)
		got.Out = shownKeys.ReplaceAllString(got.Out, "KEY")
		return got
	}
	added := ran{"API URL: http://localhost:8080/integration\nKey:     KEY\n", "", 0}
	no := func(text string) ran { return ran{"", "Error: " + text + "\n", 1} }
	for _, step := range []struct {
		args []string
		want ran
	}{
		{[]string{"add", "crm", "--limit", "600 1m"}, added},
		{[]string{"add", "plain"}, added},
		{[]string{"add", "events", "--limit", "7 1m"}, added},
		{[]string{"add", "wrong", "--limit", "0 1m"}, no("--limit 0 requests in 1m0s: write 1 to 65535 requests and a window of 1ms or longer, such as 10 1m")},
		{[]string{"add", "wrong", "--limit", "600 1 m"}, no(`--limit "600 1 m": write a number of requests and a window, such as "600 1m"`)},
		{[]string{"update", "plain", "--limit", "60000 24h"}, ran{"The rate limit of plain is 60000 24h now.\n", "", 0}},
		{[]string{"update", "form", "--limit", "6 1m"}, no("the configuration declares the integration form: write its limit there")},
		{[]string{"update", "plain", "--limit", "65536 24h"}, no("--limit 65536 requests in 24h0m0s: write 1 to 65535 requests and a window of 1ms or longer, such as 10 1m")},
		{[]string{"list"}, ran{"NAME    MODE   LIMIT      KEY                   LAST USED\n" +
			"crm     email  600 1m     made " + today() + "       never\n" +
			"events  email  50 1h30m   made " + today() + "       never\n" +
			"form    email  5 10s      in the configuration  not kept\n" +
			"plain   email  60000 24h  made " + today() + "       never\n", "", 0}},
		{[]string{"rotate", "plain"}, added},
		{[]string{"list"}, ran{"NAME    MODE   LIMIT      KEY                   LAST USED\n" +
			"crm     email  600 1m     made " + today() + "       never\n" +
			"events  email  50 1h30m   made " + today() + "       never\n" +
			"form    email  5 10s      in the configuration  not kept\n" +
			"plain   email  60000 24h  rotated " + today() + "    never\n", "", 0}},
	} {
		if diff := cmp.Diff(step.want, run(append(step.args, "--site", "daily")...)); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", strings.Join(step.args, " "), diff)
		}
	}
}
