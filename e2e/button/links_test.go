package button

import (
	"net/url"
	"strings"
	"testing"
)

const intent = "intent:#Intent;action=android.intent.action.MAIN;category=android.intent.category.LAUNCHER;package="

// Whole links, so that a change to any of them is seen.
func TestLinksSearchTheInboxOfTheRecipient(t *testing.T) {
	tests := []struct {
		recipient, sender string
		desktop, android  string // no android: as on the desktop
	}{
		{
			"jane.doe@gmail.com", "news@daily.example",
			"https://mail.google.com/mail/?authuser=jane.doe%40gmail.com#search/from%3A(news%40daily.example)+in%3Aanywhere+newer_than%3A1h",
			intent + "com.google.android.gm;S.browser_fallback_url=https%3A%2F%2Fmail.google.com%2Fmail%2F%3Fauthuser%3Djane.doe%2540gmail.com%23search%2Ffrom%253A%28news%2540daily.example%29%2Bin%253Aanywhere%2Bnewer_than%253A1h;end",
		},
		{
			"jane@yahoo.co.uk", "news@daily.example",
			"https://mail.yahoo.com/d/search/keyword=from:news%40daily.example",
			intent + "com.yahoo.mobile.client.android.mail;S.browser_fallback_url=https%3A%2F%2Fmail.yahoo.com%2Fd%2Fsearch%2Fkeyword%3Dfrom%3Anews%2540daily.example;end",
		},
		{
			"jane@hotmail.de", "news@daily.example",
			"https://outlook.live.com/mail/?login_hint=jane%40hotmail.de",
			intent + "com.microsoft.office.outlook;S.browser_fallback_url=https%3A%2F%2Foutlook.live.com%2Fmail%2F%3Flogin_hint%3Djane%2540hotmail.de;end",
		},
		{
			"jane@pm.me", "news@daily.example",
			"https://mail.proton.me/u/0/all-mail#from=news%40daily.example",
			intent + "ch.protonmail.android;S.browser_fallback_url=https%3A%2F%2Fmail.proton.me%2Fu%2F0%2Fall-mail%23from%3Dnews%2540daily.example;end",
		},
		{"jane@icloud.com", "news@daily.example", "https://www.icloud.com/mail", ""},
		{
			"jane@hey.com", "news@daily.example",
			"https://app.hey.com/topics/everything",
			intent + "com.basecamp.hey;S.browser_fallback_url=https%3A%2F%2Fapp.hey.com%2Ftopics%2Feverything;end",
		},
		{
			"jane@aol.com", "news@daily.example",
			"https://mail.aol.com/d/search/keyword=from:news%40daily.example",
			intent + "com.aol.mobile.aolapp;S.browser_fallback_url=https%3A%2F%2Fmail.aol.com%2Fd%2Fsearch%2Fkeyword%3Dfrom%3Anews%2540daily.example;end",
		},
		{
			"jane@mail.ru", "news@daily.example",
			"https://e.mail.ru/search/?q_from=news%40daily.example",
			intent + "ru.mail.mailapp;S.browser_fallback_url=https%3A%2F%2Fe.mail.ru%2Fsearch%2F%3Fq_from%3Dnews%2540daily.example;end",
		},
		{"jane@feedb.in", "news@daily.example", "https://feedbin.com/", ""},

		// Companies' webmail, and people's whose domain is not on the list.
		{"jane@workspace.example", "", "https://mail.google.com/mail/?authuser=jane%40workspace.example", intent + "com.google.android.gm;S.browser_fallback_url=https%3A%2F%2Fmail.google.com%2Fmail%2F%3Fauthuser%3Djane%2540workspace.example;end"},
		{"jane@company.example", "", "https://outlook.office.com/mail/?login_hint=jane%40company.example", intent + "com.microsoft.office.outlook;S.browser_fallback_url=https%3A%2F%2Foutlook.office.com%2Fmail%2F%3Flogin_hint%3Djane%2540company.example;end"},
		{"office@live.example", "", "https://mail.google.com/mail/?authuser=office%40live.example", intent + "com.google.android.gm;S.browser_fallback_url=https%3A%2F%2Fmail.google.com%2Fmail%2F%3Fauthuser%3Doffice%2540live.example;end"},
		{"jane@live.company.example", "", "https://outlook.office.com/mail/?login_hint=jane%40live.company.example", intent + "com.microsoft.office.outlook;S.browser_fallback_url=https%3A%2F%2Foutlook.office.com%2Fmail%2F%3Flogin_hint%3Djane%2540live.company.example;end"},
		{"jane@hotmail.fr", "", "https://outlook.live.com/mail/?login_hint=jane%40hotmail.fr", intent + "com.microsoft.office.outlook;S.browser_fallback_url=https%3A%2F%2Foutlook.live.com%2Fmail%2F%3Flogin_hint%3Djane%2540hotmail.fr;end"},
		{"jane@bücher.example", "", "https://mail.proton.me/", intent + "ch.protonmail.android;S.browser_fallback_url=https%3A%2F%2Fmail.proton.me%2F;end"},

		// The part after a plus is no part of the account's name.
		{"jane+daily+news@gmail.com", "", "https://mail.google.com/mail/?authuser=jane%40gmail.com", intent + "com.google.android.gm;S.browser_fallback_url=https%3A%2F%2Fmail.google.com%2Fmail%2F%3Fauthuser%3Djane%2540gmail.com;end"},
		{"jane+news@company.example", "", "https://outlook.office.com/mail/?login_hint=jane%40company.example", intent + "com.microsoft.office.outlook;S.browser_fallback_url=https%3A%2F%2Foutlook.office.com%2Fmail%2F%3Flogin_hint%3Djane%2540company.example;end"},
		{"+news@gmail.com", "", "https://mail.google.com/mail/?authuser=%2Bnews%40gmail.com", intent + "com.google.android.gm;S.browser_fallback_url=https%3A%2F%2Fmail.google.com%2Fmail%2F%3Fauthuser%3D%252Bnews%2540gmail.com;end"},

		// Without a sender there is nothing to search for.
		{"jane@gmail.com", "", "https://mail.google.com/mail/?authuser=jane%40gmail.com", intent + "com.google.android.gm;S.browser_fallback_url=https%3A%2F%2Fmail.google.com%2Fmail%2F%3Fauthuser%3Djane%2540gmail.com;end"},
		{"jane@yahoo.com", "", "https://mail.yahoo.com/", intent + "com.yahoo.mobile.client.android.mail;S.browser_fallback_url=https%3A%2F%2Fmail.yahoo.com%2F;end"},
		{"jane@aol.com", "", "https://mail.aol.com/", intent + "com.aol.mobile.aolapp;S.browser_fallback_url=https%3A%2F%2Fmail.aol.com%2F;end"},
		{"jane@mail.ru", "", "https://e.mail.ru/", intent + "ru.mail.mailapp;S.browser_fallback_url=https%3A%2F%2Fe.mail.ru%2F;end"},
	}
	for _, where := range []struct {
		name string
		device
	}{{"desktop", windows}, {"Android", androidPhone}, {"in an Android app", androidView}} {
		t.Run(where.name, func(t *testing.T) {
			p := visit(t, element, before(clock), on(where.device))
			for _, test := range tests {
				want := test.desktop
				if where.device == androidPhone && test.android != "" {
					want = test.android
				}
				p.address(test.recipient, test.sender)
				p.advance(400)
				b := p.shown()
				diff(t, test.recipient, want, b.Href)
				diff(t, test.recipient, "_blank noopener noreferrer", b.Target+" "+b.Rel)
				if test.android != "" {
					_, fallback, _ := strings.Cut(test.android, "S.browser_fallback_url=")
					fallback, err := url.PathUnescape(strings.TrimSuffix(fallback, ";end"))
					if err != nil {
						t.Fatalf("url.PathUnescape: %v", err)
					}
					diff(t, test.recipient+", without the app", test.desktop, fallback)
				}
			}
		})
	}
}

// address sets recipient and sender, whatever is in them.
func (p *page) address(recipient, sender string) {
	p.T.Helper()
	p.Do(`
		const button = find();
		button.recipient = %q;
		button.sender = %q;
	`, recipient, sender)
}

// Whatever a reader types, and whatever a theme gives as the sender, stays where
// it was put.
func TestNothingBreaksOutOfALink(t *testing.T) {
	const hostile = `a"'<>\;#?&=%/..//:@ +,()[]{}!*|^~$&$1{to}{from};end;package=evil.app;S.browser_fallback_url=javascript:alert(1);#Intent;` + "\u202e\n\té😀"
	encoded := strictlyEncoded(hostile)
	domains := map[string]string{
		"gmail.com":   "https://mail.google.com/mail/?authuser=RECIPIENT#search/from%3A(SENDER)+in%3Aanywhere+newer_than%3A1h",
		"yahoo.com":   "https://mail.yahoo.com/d/search/keyword=from:SENDER",
		"outlook.com": "https://outlook.live.com/mail/?login_hint=RECIPIENT",
		"proton.me":   "https://mail.proton.me/u/0/all-mail#from=SENDER",
		"icloud.com":  "https://www.icloud.com/mail",
		"hey.com":     "https://app.hey.com/topics/everything",
		"aol.com":     "https://mail.aol.com/d/search/keyword=from:SENDER",
		"mail.ru":     "https://e.mail.ru/search/?q_from=SENDER",
		"feedb.in":    "https://feedbin.com/",
	}
	for name, d := range map[string]device{"desktop": windows, "Android": androidPhone} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, element, before(clock), on(d))
			for domain, want := range domains {
				p.address(hostile+"@"+domain, hostile)
				got := p.shown().Href
				want = strings.NewReplacer("RECIPIENT", encoded+"%40"+domain, "SENDER", encoded).Replace(want)
				if strings.HasPrefix(got, "intent:") {
					parts := strings.Split(got, ";") // as Android does
					if len(parts) != 6 || parts[5] != "end" || strings.Count(got, "#") != 1 {
						t.Errorf("%s: parts of the intent: %q", domain, parts)
						continue
					}
					fallback, err := url.PathUnescape(strings.TrimPrefix(parts[4], "S.browser_fallback_url="))
					if err != nil {
						t.Errorf("url.PathUnescape: %v", err)
					}
					got = fallback
				}
				diff(t, domain, want, got)
			}
		})
	}
}

// strictlyEncoded leaves only what RFC 3986 calls unreserved, and the asterisk,
// which means nothing in a URL.
func strictlyEncoded(text string) string {
	return strings.NewReplacer("+", "%20", "%2A", "*").Replace(url.QueryEscape(text))
}

// Half of a character, which no URL can hold, is left out.
func TestLoneSurrogates(t *testing.T) {
	p := visit(t, element, before(clock))
	p.Do(`
		const button = find();
		button.sender = 'n\udc00ews@daily.example';
		button.recipient = 'j\ud800ane@gmail.com';
	`)
	diff(t, "link", "https://mail.google.com/mail/?authuser=jane%40gmail.com#search/from%3A(news%40daily.example)+in%3Aanywhere+newer_than%3A1h", p.shown().Href)
}

// A webmail that has moved is found again without a new release; what is no link
// of the web changes nothing.
func TestLinksOfThePage(t *testing.T) {
	const own = "https://mail.yahoo.com/d/search/keyword=from:news%40daily.example"
	for links, want := range map[string]string{
		`{"yahoo": "https://mail.yahoo.example/?q={from}&me={to}"}`: "https://mail.yahoo.example/?q=news%40daily.example&me=jane%40yahoo.com",
		`{"yahoo": "https://mail.yahoo.example/"}`:                  "https://mail.yahoo.example/",
		`{"gmail": "https://mail.example/"}`:                        own,
		`{"yahoo": "javascript:alert(1)"}`:                          own,
		`{"yahoo": "http://mail.example/"}`:                         own,
		`{"yahoo": 1}`:                                              own,
		`yahoo`:                                                     own,
		`null`:                                                      own,
	} {
		p := visit(t, strings.Replace(script, "defer", "data-links='"+links+"' defer", 1)+`<lychgate-inbox-button recipient="jane@yahoo.com" sender="news@daily.example"></lychgate-inbox-button>`)
		diff(t, links, want, p.shown().Href)
	}
}
