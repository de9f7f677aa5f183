package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
)

const (
	firstSecret  = "0123456789abcdef0123456789abcdef"
	secondSecret = "fedcba9876543210fedcba9876543210"
	ghostKey     = "65f1d4e5d6a0c10001a1b2c3:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

// writeStoredConfig makes or replaces a folder's Caddyfile with one site, daily, and a
// store beside it.
func writeStoredConfig(t *testing.T, folder string, options ...string) {
	t.Helper()
	const nowhere = "127.0.0.1:1" // whatever Caddy runs on this machine is not asked
	config := "{\n\tlychgate {\n\t\tstore sqlite " + filepath.Join(folder, "lychgate.db") + "\n" + strings.Join(options, "\n") +
		"\n\t\tsite daily {\n\t\t\thosts daily.example\n\t\t\tplatform none\n\t\t}\n\t}\n\tadmin " + nowhere + "\n}\nhttps:// {\n\tmembers_api\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
}

// command is a command, what is on its standard input, and what it prints. Times are
// TIME, and keys KEY.
type command struct {
	args, input string
	want        ran
}

var (
	shownTimes = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: UTC|Z)`)
	shownKeys  = regexp.MustCompile(`lg_(\w+)_[0-9a-f]{64}`)
)

func follow(t *testing.T, folder string, steps []command) {
	t.Helper()
	for _, s := range steps {
		got := lychgateWith(t, folder, s.input, strings.Fields(s.args)...)
		got.Out = shownKeys.ReplaceAllString(shownTimes.ReplaceAllString(got.Out, "TIME"), "KEY")
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", s.args, diff)
		}
		if strings.Contains(got.Out+got.Err, ghostKey) {
			t.Errorf("%s prints the key", s.args)
		}
	}
}

// An operator adds, looks at, changes and removes sites, and is told what to write
// where something is missing or wrong.
func TestSiteCommands(t *testing.T) {
	folder := t.TempDir()
	writeStoredConfig(t, folder, "secret "+firstSecret)
	no := func(text string) ran { return ran{"", "Error: " + text + "\n", 1} }
	follow(t, folder, []command{
		{"site list", "", no("there is no store at " + filepath.Join(folder, "lychgate.db") + ": see that store in the configuration is right, and run this in the environment of Caddy; Caddy makes it when it starts")},
		{"site add", "", no("name the site: caddy lychgate site add <name> [flags]")},
		{"site add weekly", "", no("say at which hosts the site is live, as in: --hosts news.example.com,www.news.example.com")},
		{"site add weekly --hosts weekly.example", "", no("say where its members are: --platform ghost --url http://127.0.0.1:2368 --admin-key -, or --platform none for the store alone")},
		{"site add weekly --hosts weekly.example --platform ghost --url http://127.0.0.1:2368", "", no("--platform ghost needs --url http://127.0.0.1:2368, and --admin-key - with the key of a custom integration in Ghost's settings on standard input")},
		{"site add weekly --hosts weekly.example --platform ghost --url http://127.0.0.1:2368 --admin-key -", "", no(`--admin-key - reads the key from standard input, which has none: write it there, as in: echo "$KEY" | caddy lychgate site …`)},
		{"site add weekly --hosts weekly.example --platform ghost --url http://127.0.0.1:2368 --admin-key 65f1:00", "", no(`--admin-key takes - alone, and reads the key from standard input, as in: echo "$KEY" | caddy lychgate site …`)},
		{"theme add nightly --site weekly --repository https://git.example.com/acme/nightly.git --token t0ken", "", no("--token takes - alone, and reads the token from standard input")},
		{"site add weekly --hosts weekly.example --platform none --url http://127.0.0.1:2368", "", no("site weekly: --url: platform none has none: leave it out")},
		{"site add weekly --hosts weekly.example --platform ghost --url {env.SECRET} --admin-key -", ghostKey, no(`site weekly: --url: "{env.SECRET}" is a placeholder, which a site in the store cannot have: write the value itself`)},
		{"site add weekly --hosts weekly.example --platform wordpress", "", no(`--platform "wordpress": write none, or ghost with --url and --admin-key`)},
		{"site add weekly --hosts weekly.example --platform none --registration off", "", no(`write "off" with the flag and "=", as in: --registration=off`)},
		{"site update weekly --staff-integrations on", "", no(`write "on" with the flag and "=", as in: --registration=on`)},
		{"site add weekly --hosts weekly.example --platform none --registration no", "", no(`write "off" with the flag and "=", as in: --registration=off`)},
		{"site add weekly --hosts weekly.example --platform none --registration=no", "", no(`invalid argument "no" for "--registration" flag: write on or off`)},
		{"site add week/ly --hosts weekly.example --platform none", "", no(`site week/ly: sites: "week/ly": a name has 1 to 63 letters, digits, hyphens and underscores, such as daily`)},
		{"site add weekly --hosts a.example b.example --platform none", "", no(`name the site alone, and leave "b.example" out: several hosts have commas between them, and no spaces`)},
		{"site add weekly --hosts Daily.Example. --platform none", "", no("site weekly: host daily.example belongs to site daily of the configuration")},

		{"site add weekly --hosts Weekly.example,bücher.example --platform ghost --url http://127.0.0.1:2368 --admin-key -", ghostKey + "\n", ran{"Site weekly is added, and live at weekly.example xn--bcher-kva.example within two seconds.\n", "", 0}},
		{"site add plain --hosts plain.example --platform none", "", ran{"Site plain is added, and live at plain.example within two seconds.\n", "", 0}},
		{"site add plain --hosts other.example --platform none", "", no("adding site plain: there is a site plain already: change that one, or take another name")},
		{"site add other --hosts plain.example --platform none", "", no("adding site other: host plain.example of site other already belongs to site plain")},
		{"site list", "", ran{"NAME    PLATFORM  HOSTS                                 KEYS\nplain   none      plain.example                         none\nweekly  ghost     weekly.example xn--bcher-kva.example  sealed\n", "", 0}},

		{"integration add crm --site weekly", "", ran{"API URL: https://weekly.example/integration\nKey:     KEY\n", "", 0}},
		{"integration list --site weekly", "", ran{"NAME  MODE   LIMIT    KEY              LAST USED\ncrm   email  default  made " + today() + "  never\n", "", 0}},
		{"integration update crm --site weekly", "", no(`say what to change, as in: --limit "600 1m"`)},
		{"integration update crm --site weekly --limit 600", "", no(`--limit "600": write a number of requests and a window, such as "600 1m"`)},
		{"integration update form --site weekly --limit=", "", no("site weekly has no integration form: list shows those that it has")},
		{"integration update crm --site weekly --limit=", "", ran{"The rate limit of crm is that of members_api now.\n", "", 0}},
		{"integration list --site nobody", "", no("the configuration has no site nobody, nor has the store: the configuration has daily")},
		{"theme add nightly --site weekly --repository https://git.example.com/acme/nightly.git --token -", "t0ken\n", ran{"The theme nightly of site weekly can be refreshed from https://git.example.com/acme/nightly.git now.\n", "", 0}},
		{"theme list --site weekly", "", ran{"NAME     REPOSITORY                                BRANCH\nnightly  https://git.example.com/acme/nightly.git  \n", "", 0}},
		{"theme add nightly --site plain --repository https://git.example.com/acme/nightly.git", "", no(`site plain: themes.nightly: a site with "kind": "none" has no themes: take the theme out, or write "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"}`)},
		{"theme add nightly --site daily --repository https://git.example.com/acme/nightly.git", "", no("site daily is in the configuration: its themes are there too")},
		{"theme list", "", no("name a site in the store with --site: caddy lychgate site list shows them")},
		{"site show weekly", "", ran{"Name:          weekly\nHosts:         weekly.example xn--bcher-kva.example\nPlatform:      ghost http://127.0.0.1:2368\n" +
			"Themes:        nightly from https://git.example.com/acme/nightly.git\nIntegrations:  crm\nAdded:         TIME\nChanged:       TIME\n", "", 0}},
		{"site show plain --json", "", ran{"{\n  \"name\": \"plain\",\n  \"hosts\": [\n    \"plain.example\"\n  ],\n  \"platform\": {\n    \"kind\": \"none\"\n  },\n  \"created_at\": \"TIME\",\n  \"updated_at\": \"TIME\"\n}\n", "", 0}},
		{"site show daily", "", no("site daily is in the configuration, not in the store: look there")},
		{"site show nobody", "", no("finding site nobody: there is no such site: caddy lychgate site list shows those in the store")},

		{"site update weekly", "", no("say what to change, such as --hosts news.example.com: caddy lychgate site update --help lists the flags")},
		{"site update weekly --hosts plain.example", "", no("changing site weekly: host plain.example of site weekly already belongs to site plain")},
		{"site update weekly --hosts new.example --reconcile off", "", ran{"Site weekly is changed, everywhere within two seconds.\n", "", 0}},
		{"site update weekly --reconcile fast", "", no(`site weekly: --reconcile: "fast": write "off", or a duration of a minute or more, such as "6h"`)},
		{"site update weekly --url http://127.0.0.1:2369", "", no("site weekly: --url: this is another server than before, and would be sent the admin_key that is kept: write --admin-key - too")},
		{"site update plain --platform ghost --url http://127.0.0.1:2368", "", no("site plain: --admin-key: needs the key of a custom integration in Ghost's settings")},
		{"theme remove nightly --site weekly", "", ran{"The theme nightly of site weekly is no longer refreshed. Its manifest stays.\n", "", 0}},
		{"theme remove nightly --site weekly", "", no("site weekly has no theme nightly with a repository: list shows those that have")},
		{"site show weekly", "", ran{"Name:          weekly\nHosts:         new.example\nPlatform:      ghost http://127.0.0.1:2368\nReconcile:     off\nIntegrations:  crm\nAdded:         TIME\nChanged:       TIME\n", "", 0}},
		{"site update weekly --platform none", "", ran{"Site weekly is changed, everywhere within two seconds.\n", "", 0}},
		{"site list", "", ran{"NAME    PLATFORM  HOSTS          KEYS\nplain   none      plain.example  none\nweekly  none      new.example    none\n", "", 0}},

		{"site update weekly --label Acme", "", no(`site weekly: --label: "Acme": a label has 1 to 63 lower-case letters, digits and hyphens, such as acme`)},
		{"site update weekly --label trial,acme", "", ran{"Site weekly is changed, everywhere within two seconds.\n", "", 0}},
		{"site list --label acme", "", ran{"NAME    PLATFORM  HOSTS        KEYS\nweekly  none      new.example  none\n", "", 0}},
		{"site list --json", "", ran{`{"sites":[` + "\n" + `{"name":"plain","hosts":["plain.example"],"platform":{"kind":"none"},"created_at":"TIME","updated_at":"TIME"},` + "\n" +
			`{"name":"weekly","hosts":["new.example"],"platform":{"kind":"none"},"labels":["acme","trial"],"created_at":"TIME","updated_at":"TIME"}]}` + "\n", "", 0}},
		{"site list --json --label nobody", "", ran{`{"sites":[]}` + "\n", "", 0}},
		{"site list --label beta", "", ran{"NAME  PLATFORM  HOSTS  KEYS\n", "", 0}},
		{"site list --label Beta", "", no(`--label "Beta": a label has 1 to 63 lower-case letters, digits and hyphens, such as acme`)},
		{"site show weekly", "", ran{"Name:          weekly\nHosts:         new.example\nLabels:        acme trial\nPlatform:      none\nIntegrations:  crm\nAdded:         TIME\nChanged:       TIME\n", "", 0}},
		{"site update weekly --label=", "", ran{"Site weekly is changed, everywhere within two seconds.\n", "", 0}},
		{"site list --label acme", "", ran{"NAME  PLATFORM  HOSTS  KEYS\n", "", 0}},

		{"site remove weekly", "", ran{"Site weekly is removed. What is kept of it is deleted in two minutes, while Caddy runs.\n", "", 0}},
		{"site remove weekly", "", no("finding site weekly: there is no such site: caddy lychgate site list shows those in the store")},
		{"site add weekly --hosts weekly.example --platform none", "", no("adding site weekly: the data of a removed site of this name is still being deleted: it takes two minutes while Caddy runs, so try again then, or choose another name")},
	})

	follow(t, folder, []command{ // a site moves into the store, and out of it
		{"site add daily --hosts daily.example --platform none", "", ran{"Site daily is added. The one of the configuration is served until it is taken out there; what is kept under the name is then this one's.\n", "", 0}},
		{"site list", "", ran{"NAME   PLATFORM  HOSTS          KEYS\ndaily  none      daily.example  none; the configuration's is served\nplain  none      plain.example  none\n", "", 0}},
		{"site remove daily", "", ran{"Site daily is removed from the store. What is kept under its name stays, for the one of the configuration.\n", "", 0}},
		{"site add daily --hosts daily.example --platform none", "", ran{"Site daily is added. The one of the configuration is served until it is taken out there; what is kept under the name is then this one's.\n", "", 0}},
	})
	writeStoredConfig(t, folder)
	follow(t, folder, []command{
		{"site add sealed --hosts sealed.example --platform ghost --url http://127.0.0.1:2368 --admin-key -", ghostKey, no(
			"adding site sealed: there is no secret to seal its keys with: write secret {env.LYCHGATE_SECRET} into the lychgate block, with a value as openssl rand -hex 32 makes it")},
		{"secret reseal", "", no("the configuration has no secret: write secret {env.LYCHGATE_SECRET} into the lychgate block, with a value as openssl rand -hex 32 makes it")},
	})
	writeStoredConfig(t, folder, "secret hunter2")
	follow(t, folder, []command{
		{"site list", "", no("adapting config using caddyfile: parsing caddyfile tokens for 'lychgate': lychgate: secret: a secret has 32 characters or more; openssl rand -hex 32 makes a good one, at Caddyfile:4")},
	})
}

func today() string { return time.Now().Format(time.DateOnly) }

// Writes that Ghost does not have yet are not lost by a removal that did not say so.
func TestRemovePending(t *testing.T) {
	folder, _, store := siteFolder(t)
	m := exportedMembers()[0]
	m.Site, m.MemberID, m.Applied = "busy", "", 0
	if lychgate(t, folder, "site", "add", "busy", "--hosts", "busy.example", "--platform", "none").Code != 0 {
		t.Fatal("site add busy: got another exit code, want 0")
	}
	if err := store.Insert(t.Context(), m, "", members.Lease{}); err != nil {
		t.Fatalf("store.Insert: %v", err)
	}
	follow(t, folder, []command{
		{"site remove busy", "", ran{"", "Error: site busy has writes of 1 member that its platform does not have yet: wait, or write --force to lose them\n", 1}},
		{"site show busy", "", ran{"Name:      busy\nHosts:     busy.example\nPlatform:  none\nPending:   writes of 1 member that the platform does not have yet\nAdded:     TIME\nChanged:   TIME\n", "", 0}},
		{"site remove busy --force", "", ran{"Site busy is removed. What is kept of it is deleted in two minutes, while Caddy runs.\n", "", 0}},
	})
}

// Ten thousand sites move in with one file, which is checked as a whole before, and may
// be added again.
func TestSitesFromCSV(t *testing.T) {
	folder := t.TempDir()
	writeStoredConfig(t, folder, "secret "+firstSecret)
	var many strings.Builder
	many.WriteString("\ufeffplatform,name,hosts,url,admin_key\r\n")
	for i := range 1000 {
		fmt.Fprintf(&many, "ghost,s%d,s%d.example www.s%d.example,http://127.0.0.1:2368,%s\r\n", i, i, i, ghostKey)
	}
	var wide strings.Builder // more hosts than one step may have
	wide.WriteString("platform,name,hosts\n")
	for i := range 201 {
		fmt.Fprintf(&wide, "none,wide%d,", i)
		for j := range 100 {
			fmt.Fprintf(&wide, "w%d.wide%d.example ", j, i)
		}
		wide.WriteString("\n")
	}
	adding := func(n, s string) string { return "Adding " + n + " site" + s + " …\n" }
	for _, test := range []struct {
		name, csv string
		want      ran
	}{
		{"nothing", "", ran{"", "Error: nothing was added: standard input, it is empty: its first line names the columns, such as name,hosts,platform,url,admin_url,admin_key,webhooks,reconcile,staff_integrations,registration,mail,mail_from,labels\n", 1}},
		{"an unknown column", "name,host\n", ran{"", `Error: nothing was added: standard input, line 1: there is no column "host": known are name, hosts, platform, url, admin_url, admin_key, webhooks, reconcile, staff_integrations, registration, mail, mail_from, labels` + "\n", 1}},
		{"not UTF-8", "name;hosts;platform\nbook;b\xfccher.example;none\n", ran{"", `Error: nothing was added: standard input, line 2 is not UTF-8. It looks like windows-1252, ` +
			`where it says "bücher.example": if that is right, convert the file with iconv -f windows-1252 -t utf-8; else save it as "CSV UTF-8"` + "\n", 1}},
		{"a column twice", "name,name\n", ran{"", "Error: nothing was added: standard input, line 1: the column name is given twice\n", 1}},
		{"a short line", "name,hosts,platform\na,a.example\n", ran{"", "Error: nothing was added: standard input, record on line 2: wrong number of fields\n", 1}},
		{"a site twice", "name,hosts,platform\na,a.example,none\nb,b.example,none\na,c.example,none\n", ran{"", "Error: nothing was added: standard input, line 4: site a is in line 2 too\n", 1}},
		{"a host twice", "name,hosts,platform\na,a.example,none\nb,b.example A.example,none\n", ran{"", "Error: nothing was added: standard input, line 3: host a.example of site b belongs to site a of line 2\n", 1}},
		{"a wrong site", "name,hosts,platform\na,a.example,none\nb,b example,wordpress\n", ran{"", "Error: nothing was added: standard input, line 3: platform \"wordpress\" of site b: write none, or ghost with its url and admin_key\n", 1}},
		{"a site without hosts", "name,hosts,platform\na,a.example,none\nb,,none\n", ran{"", "Error: nothing was added: standard input, line 3: site b has no hosts: write one or more, with spaces between them\n", 1}},
		{"a host of the configuration", "name,hosts,platform\na,daily.example,none\n", ran{"", "Error: nothing was added: standard input, line 2: site a: host daily.example belongs to site daily of the configuration\n", 1}},
		{"staff, in other words", "name,hosts,platform,staff_integrations\na,a.example,none,yes\n", ran{"", "Error: nothing was added: standard input, line 2: staff_integrations \"yes\": write on or off\n", 1}},
		{"registration, in other words", "name,hosts,platform,registration\na,a.example,none,yes\n", ran{"", "Error: nothing was added: standard input, line 2: registration \"yes\": write on or off\n", 1}},
		{"staff", "name,hosts,platform,staff_integrations\nmanaged,managed.example,none,on\nplain,plain.example,none,\n", ran{"2 sites added, 0 were there already.\n", adding("2", "s"), 0}},
		{"a thousand", many.String(), ran{"1,000 sites added, 0 were there already.\n", adding("1,000", "s"), 0}},
		{"the same again, and one more", many.String() + "none,more,more.example,,\r\n", ran{"1 site added, 1,000 were there already.\n", adding("1,001", "s"), 0}},
		{"sites with a hundred hosts each", wide.String(), ran{"201 sites added, 0 were there already.\n", adding("201", "s"), 0}},
		{"another of the same name", "name,hosts,platform\nnew,new.example,none\ns1,other.example,none\n", ran{"", "Error: nothing was added: standard input, line 3: there is a site s1 with other settings: change it with caddy lychgate site update\n", 1}},
		{"several mistakes", "name,hosts,platform\na,a.example,nnoe\nb,www.s9.example.org,none\nc,www.s8.example,none\nd,,none\ne,b.example www.s9.example.org,none\n", ran{
			"",
			"Error: nothing was added: standard input, 4 lines are wrong:\n" +
				"line 2: platform \"nnoe\" of site a: write none, or ghost with its url and admin_key\n" +
				"line 4: host www.s8.example of site c already belongs to site s8\n" +
				"line 5: site d has no hosts: write one or more, with spaces between them\n" +
				"line 6: host www.s9.example.org of site e belongs to site b of line 3\n", 1,
		}},
		{"a host that is taken", "name,hosts,platform\nnew,new.example,none\nother,www.s9.example www.s7.example,none\nlast,www.s8.example,none\n", ran{
			"",
			"Error: nothing was added: standard input, 2 lines are wrong:\n" +
				"line 3: host www.s7.example of site other already belongs to site s7\n" +
				"line 4: host www.s8.example of site last already belongs to site s8\n", 1,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, lychgateWith(t, folder, test.csv, "site", "add", "--from-csv", "-")); diff != "" {
				t.Errorf("lychgateWith (-want +got):\n%s", diff)
			}
		})
	}
	file := filepath.Join(folder, "sites.csv")
	if err := os.WriteFile(file, []byte("name,hosts,platform\nfile,file.example,none\n"), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	follow(t, folder, []command{
		{"site add --from-csv " + file, "", ran{"1 site added, 0 were there already.\n", adding("1", ""), 0}},
		{"site show managed", "", ran{"Name:              managed\nHosts:             managed.example\nPlatform:          none\nManaged by staff:  integrations\nAdded:             TIME\nChanged:           TIME\n", "", 0}},
		{"site update managed --staff-integrations=false", "", ran{"Site managed is changed, everywhere within two seconds.\n", "", 0}},
		{"site show managed", "", ran{"Name:      managed\nHosts:     managed.example\nPlatform:  none\nAdded:     TIME\nChanged:   TIME\n", "", 0}},
		{"site add x --from-csv " + file, "", ran{"", "Error: --from-csv says what to do, so leave \"x\" out\n", 1}},
		{"site add --from-csv /nowhere.csv", "", ran{"", "Error: open /nowhere.csv: no such file or directory\n", 1}},
	})
}

// An operator changes the secret, and is told which sites need their keys again.
func TestOperatorLearnsWhichSitesNeedKeys(t *testing.T) {
	folder := t.TempDir()
	add := func(name string) command {
		return command{
			"site add " + name + " --hosts " + name + ".example --platform ghost --url http://127.0.0.1:2368 --admin-key -", ghostKey,
			ran{"Site " + name + " is added, and live at " + name + ".example within two seconds.\n", "", 0},
		}
	}
	writeStoredConfig(t, folder, "secret "+firstSecret)
	follow(t, folder, []command{add("one"), add("two")})
	writeStoredConfig(t, folder, "secret "+secondSecret)
	const lost = "Error: the keys of 2 sites cannot be opened: write the secret that sealed them behind the others, or give each its key again with caddy lychgate site update <name> --admin-key -\n"
	follow(t, folder, []command{
		{add("three").args, ghostKey, ran{add("three").want.Out, "Its keys are sealed with a secret that does not open those of site one: is it the secret that the edges have?\n", 0}},
		{"site list", "", ran{"NAME   PLATFORM  HOSTS          KEYS\none    ghost     one.example    cannot be opened\nthree  ghost     three.example  sealed\ntwo    ghost     two.example    cannot be opened\n", "", 0}},
		{"secret reseal", "", ran{"Site one: its keys cannot be opened: it was sealed with another secret.\nSite two: its keys cannot be opened: it was sealed with another secret.\n", lost, 1}},
		{"site update one --admin-key -", ghostKey, ran{"Site one is changed, everywhere within two seconds.\n", "", 0}},
	})
	writeStoredConfig(t, folder, "secret "+secondSecret+" "+firstSecret)
	follow(t, folder, []command{
		{"secret reseal", "", ran{"The keys of 1 site are sealed anew.\n", "", 0}},
		{"secret reseal", "", ran{"All keys are sealed with the first secret already.\n", "", 0}},
	})
	writeStoredConfig(t, folder, "secret "+secondSecret)
	follow(t, folder, []command{
		{"site list", "", ran{"NAME   PLATFORM  HOSTS          KEYS\none    ghost     one.example    sealed\nthree  ghost     three.example  sealed\ntwo    ghost     two.example    sealed\n", "", 0}},
	})
}
