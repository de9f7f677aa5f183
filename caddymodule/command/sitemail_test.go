package command_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/checkout"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

// The URL of a server has its password, so it comes in as a key does, and never out.
func TestMailOfAStoredSite(t *testing.T) {
	folder := t.TempDir()
	writeStoredConfig(t, folder, "secret "+firstSecret)
	no := func(text string) ran { return ran{"", "Error: " + text + "\n", 1} }
	changed := ran{"Site weekly is changed, everywhere within two seconds.\n", "", 0}
	shown := func(mail string) ran {
		return ran{"Name:      weekly\nHosts:     weekly.example\nPlatform:  ghost http://127.0.0.1:2368\n" + mail + "Added:     TIME\nChanged:   TIME\n", "", 0}
	}
	const url = "smtp://jo:hunter2@smtp.example.com"
	const add = "site add weekly --hosts weekly.example --platform ghost --url http://127.0.0.1:2368 --admin-key - "
	follow(t, folder, []command{
		{add + "--mail " + url + " --mail-from a@b.example", ghostKey, no(`--mail takes - alone, and reads the URL from standard input, as in: echo "$SMTP_URL" | caddy lychgate site …`)},
		{add + "--mail - --mail-from a@b.example", ghostKey, no(`--mail - reads the URL from standard input, which has none: write it there, as in: echo "$SMTP_URL" | caddy lychgate site …`)},
		{add + "--mail -", ghostKey + "\n" + url, no(`site weekly: --mail-from: needs the address that mails are from, such as "The Daily <events@example.com>"`)},
		{add + "--mail-from a@b.example", ghostKey, no("site weekly: --mail: no address of an SMTP server: write it as smtp://user:password@smtp.example.com:587, or smtps:// for TLS from the first byte " +
			"(in the user and the password, what is no letter or digit is percent-encoded: @ is %40, / is %2F, # is %23)")},
		{add + "--mail - --mail-from a@b.example", ghostKey + "\n" + url + "\n", ran{"Site weekly is added, and live at weekly.example within two seconds.\n", "", 0}},
		{"site show weekly", "", shown("Mail:      from a@b.example\n")},
		{"site update weekly --mail-from c@b.example", "", changed},
		{"site show weekly", "", shown("Mail:      from c@b.example\n")},
		{"site update weekly --mail off", "", changed},
		{"site show weekly", "", shown("Mail:      off\n")},
		{"site update weekly --mail - --mail-from c@b.example", url, changed},
		{"site update weekly --mail=", "", changed},
		{"site show weekly", "", shown("")},
		{"site add --from-csv -", "name,hosts,platform,mail,mail_from\na,a.example,none," + url + ",a@b.example\nb,b.example,none,off,\nc,c.example,none,,\n", ran{"3 sites added, 0 were there already.\n", "Adding 3 sites …\n", 0}},
		{"site show a", "", ran{"Name:      a\nHosts:     a.example\nPlatform:  none\nMail:      from a@b.example\nAdded:     TIME\nChanged:   TIME\n", "", 0}},
		{"site add --from-csv -", "name,hosts,platform,mail,mail_from\nd,d.example,none," + url + ",\n", no("nothing was added: standard input, line 2: site d: mail.from: needs the address that mails are from, such as \"The Daily <events@example.com>\"")},
	})
}

// The doctor signs in to the server of all sites and to those of sites that have their own, and says what docs/mail.md has.
func TestDoctorOfMail(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{User: "jo", Password: "s3cret"})
	t.Setenv("LYCHGATE_TEST_SMTP_URL", "smtp://jo:s3cret@"+server.Address)
	folder := t.TempDir()
	writeStoredConfig(t, folder, "mail {env.LYCHGATE_TEST_SMTP_URL} {\nfrom \"The Daily <events@example.com>\"\n}",
		"site weekly {\nhosts weekly.example\nplatform none\nmail smtp://jo:wr0ng@"+server.Address+" {\nfrom events@example.com\n}\n}")
	var got []string
	for line := range strings.Lines(lychgate(t, folder, "doctor").Out) {
		if strings.Contains(line, "mail: ") {
			got = append(got, changing.ReplaceAllString(line, "#"))
		}
	}
	page, err := os.ReadFile(checkout.Path("docs/mail.md"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	_, example, _ := strings.Cut(string(page), "```console\n")
	example, _, _ = strings.Cut(example, "```")
	asHere := strings.NewReplacer("smtp.example.com:587", "#", "smtp.example.org:587", "#", `"events"`, `"jo"`, "authentication failed", "no such user, or another password")
	want := slices.Collect(strings.Lines(asHere.Replace(example)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the doctor (-want +got):\n%s", diff)
	}
}
