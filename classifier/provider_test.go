package classifier

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// As many domains as were promised.
func TestBuiltInDomainsPerProvider(t *testing.T) {
	got := make(map[Provider]int)
	for _, provider := range builtIn {
		got[provider]++
	}
	want := map[Provider]int{
		Gmail: 3, Yahoo: 7, Outlook: 9, Proton: 4, ICloud: 3, Hey: 1, AOL: 1, MailRu: 1, Feedbin: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(builtIn) != 30 {
		t.Errorf("%d built-in domains, want 30", len(builtIn))
	}
}

func TestProvidersAreAllListed(t *testing.T) {
	want := []Provider{"gmail", "yahoo", "outlook", "proton", "icloud", "hey", "aol", "mailru", "feedbin"}
	if diff := cmp.Diff(want, Providers()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The inbox button is made from this list: what it lacks is asked for, and what
// it has too much is shown wrongly.
func TestBuiltIn(t *testing.T) {
	answered := make(map[string]Provider)
	var order []Provider
	names := make(map[string]bool)
	for _, webmail := range BuiltIn() {
		order = append(order, webmail.Provider)
		names[webmail.Name] = true
		for _, domain := range webmail.Domains {
			answered[domain] = webmail.Provider
		}
	}
	if diff := cmp.Diff(builtIn, answered); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Providers(), order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(names) != len(order) || names[""] {
		t.Errorf("each provider needs a name of its own: %v", names)
	}

	BuiltIn()[0].Domains[0] = "changed.example" // by the caller
	if BuiltIn()[0].Domains[0] == "changed.example" {
		t.Error("a caller has changed the list, want each caller to get a copy")
	}
}

func TestOfServer(t *testing.T) {
	tests := []struct {
		exchange string
		want     Provider
	}{
		{"aspmx.l.google.com.", Gmail},
		{"ASPMX.L.GOOGLE.COM", Gmail},
		{"alt1.aspmx.l.google.com", Gmail},
		{"aspmx2.googlemail.com.", Gmail},
		{"google.com.", Gmail},
		{"mx1.smtp.goog.", Gmail},
		{"MX4.SMTP.GOOG", Gmail},
		{"goog.", None},
		{"mx1.notsmtp.goog.", None},
		{"example-com.mail.protection.outlook.com.", Outlook},
		{"example-com.a-v1.mx.microsoft.", Outlook},
		{"mx.microsoft.", Outlook},
		{"hotmail-com.olc.protection.outlook.com", Outlook},
		{"mta5.am0.yahoodns.net.", Yahoo},
		{"yahoodns.net.", Yahoo},
		{"mx-aol.mail.gm0.yahoodns.net.", AOL},
		{"MX-AOL2.mail.gm0.yahoodns.net.", AOL},
		{"mail.mx-aol.yahoodns.net.", Yahoo}, // only the first label tells
		{"mx-aol.aol.com.", AOL},
		{"mx-aol.yahoo.com.", Yahoo},
		{"mail.protonmail.ch.", Proton},
		{"mx01.mail.icloud.com.", ICloud},
		{"work-mx.app.hey.com.", Hey},
		{"mxs.mail.ru.", MailRu},
		{"smtp.feedb.in.", Feedbin},

		{"notgoogle.com.", None},
		{"google.com.example.net.", None},
		{"google.example.", None},
		{"outlook.com.evil.", None},
		{"microsoft.", None},
		{"com.", None},
		{".", None},
		{"", None},
		{`evil\.google.com.`, None}, // one label, "evil.google", below com
		{`\103oogle.com.`, None},
		{"google.com..", None},
	}
	for _, test := range tests {
		if got := ofServer(test.exchange); got != test.want {
			t.Errorf("ofServer(%q) = %q, want %q", test.exchange, got, test.want)
		}
	}
}
