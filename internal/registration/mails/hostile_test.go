package mails

import (
	"fmt"
	"mime"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

// hostile are texts of staff, of readers and of Ghost that are to be text wherever they stand.
var hostile = map[string]string{
	"lines":             "A\r\nBcc: evil@example.com\r\nX-Evil: 1\r\n\r\n<b>B\r\n.\r\n",
	"other ends":        "A\nBcc: x@example.com\rB\u2028C\u2029D\u0085E\vF\fG",
	"HTML":              `</p></h1></title></style><script>alert(1)</script><img src=x onerror="alert(1)"><a href='javascript:alert(1)'>&lt;b&gt; "' -->`,
	"a template":        `{{.Cancel}} {{template "letter"}} {{range .}} * * ${x} %s %!d(MISSING)`,
	"a script's URL":    "javascript:alert(1)",
	"data":              "data:text/html,<script>alert(1)</script>",
	"a style":           `red;background:url(https://evil.example/x)} body{display:none`,
	"an encoded word":   "=?utf-8?q?A=0D=0ABcc:_evil@example.com?=",
	"an address":        `"Evil" <evil@example.com>, b@example.com`,
	"directions":        "\u202eevil\u2066 \u200f\u2069\u2069x\u202d\u2067",
	"controls":          "a\x00b\x1b[31mc\x7fd",
	"no UTF-8":          "a\xff\xfeb\xc3",
	"100 KB in a word":  strings.Repeat("a", 100_000),
	"100 KB of two":     strings.Repeat("ü ", 33_000),
	"25 KB of links":    "See " + strings.Repeat("https://evil.example/<'\" ", 1000),
	"100 KB of lines":   strings.Repeat("\r\n", 50_000) + "x",
	"nothing but space": " \t\r\n\u2028",
}

// hostileEvent has a text in each value that a mail shows.
func hostileEvent(text string) *events.Event {
	return &events.Event{
		Site: "daily", ID: party, Status: events.Published, Post: events.Post{URL: "https://news.example.com/party/"},
		Shape:  events.Shape{Fields: events.EditorKeys()},
		Values: map[string]any{"name": text, "location": text, "platform_url": text, "event_date": "2088-05-01"},
	}
}

// hostileMail is a mail of a kind that has a text in all that others write.
func hostileMail(kind, language, text string) mail.Message {
	e := hostileEvent(text)
	l := letter{
		Kind: kind, Language: language, Event: e.Mailed(language), Text: text, Until: text, Before: e.ScheduleText(language, events.Schedule{Start: "2088-05-01", AllDay: true, Place: text}),
		Publication: platform.Publication{Title: text, URL: "https://news.example.com/", Icon: "https://news.example.com/icon.png", Accent: text},
		Cancel:      "https://news.example.com/cancel", Stop: "https://news.example.com/stop", Message: Draft{text, text},
	}
	m := l.message()
	m.To, m.ToName, m.ID, m.Unsubscribe, m.OneClick = "jane@example.com", text, "1", "https://news.example.com/stop", true
	return m
}

// elementsOf are the elements of a page with their attributes, where links and pictures lead, and styles that have what others wrote.
func elementsOf(tree *html.Node) (all []string) {
	for node := range tree.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		element := []string{node.Data}
		for _, a := range node.Attr {
			shown := a.Key
			if a.Key == "href" || a.Key == "src" || strings.ContainsAny(a.Val, "{}()") {
				shown += "=" + a.Val
			}
			element = append(element, shown)
		}
		all = append(all, strings.Join(element, " "))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// textOf is what a page says, with its title.
func textOf(tree *html.Node) string {
	var all strings.Builder
	for node := range tree.Descendants() {
		if node.Type == html.TextNode {
			all.WriteString(node.Data)
		}
	}
	return plain(all.String())
}

// plain is a text with one space between words.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")), " ")
}

// headersOf are the headers of a mail, each with how often it is there and its recipients.
func headersOf(t *testing.T, m smtptest.Mail) (all []string) {
	t.Helper()
	parsed, err := netmail.ReadMessage(strings.NewReader(m.Data))
	if err != nil {
		t.Fatalf("netmail.ReadMessage: %v", err)
	}
	for name, values := range parsed.Header {
		all = append(all, fmt.Sprint(name, " ", len(values)))
	}
	list, err := parsed.Header.AddressList("To")
	if err != nil {
		t.Fatalf("AddressList: %v", err)
	}
	for _, to := range list {
		all = append(all, "to "+to.Address)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil || len(subject) > 1100 || strings.ContainsFunc(subject, func(r rune) bool { return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' }) {
		t.Errorf("the subject is %q, %v, want a short line that turns no directions", subject, err)
	}
	slices.Sort(all)
	return all
}

// Whatever staff, readers and Ghost write is text: it adds no header, no recipient, and no element, link or style to the HTML.
func TestHostileTexts(t *testing.T) {
	fake := smtptest.Start(t, smtptest.Options{NoSTARTTLS: true})
	server, err := mail.New(mail.Config{URL: "smtp://" + fake.Address, From: "The Daily <events@example.com>"})
	if err != nil {
		t.Fatalf("mail.New: %v", err)
	}
	send := func(m mail.Message) (headers []string, tree *html.Node) {
		t.Helper()
		if err := server.Send(t.Context(), m); err != nil {
			t.Fatalf("Send: %v", err)
		}
		taken := fake.Mails()
		tree, err := html.Parse(strings.NewReader(m.HTML))
		if err != nil {
			t.Fatalf("html.Parse: %v", err)
		}
		return headersOf(t, taken[len(taken)-1]), tree
	}
	for _, kind := range append(events.MailKinds(), FromStaff) {
		for _, language := range []string{"en", "ar"} {
			headers, tree := send(hostileMail(kind, language, "plain"))
			elements := elementsOf(tree)
			for name, text := range hostile {
				t.Run(kind+" in "+language+" with "+name, func(t *testing.T) {
					gotHeaders, tree := send(hostileMail(kind, language, text))
					if diff := cmp.Diff(headers, gotHeaders); diff != "" {
						t.Errorf("headers (-want +got):\n%s", diff)
					}
					added := slices.DeleteFunc(elementsOf(tree), func(element string) bool {
						return slices.Contains(elements, element) || kind == FromStaff && (element == "br" || strings.HasPrefix(element, "a class href=https://evil.example/"))
					})
					if len(added) > 0 {
						t.Errorf("added to the HTML: %q, want nothing", added)
					}
					if shown := clip.Text(plain(text), 50); !strings.Contains(textOf(tree), strings.TrimSuffix(shown, "…")) {
						t.Errorf("the HTML does not say %q", shown)
					}
				})
			}
		}
	}
}
