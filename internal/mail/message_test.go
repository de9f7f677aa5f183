package mail_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

// received is a mail as its recipient's client reads it.
type received struct {
	Header map[string]string
	Parts  []part
}

// part is a leaf. In says in which containers it is.
type part struct{ In, Type, Disposition, Body string }

// read parses a mail, and fails for a line that SMTP does not carry.
func read(t testing.TB, data string) received {
	t.Helper()
	for line := range strings.SplitAfterSeq(data, "\r\n") {
		if text := strings.TrimSuffix(line, "\r\n"); len(text) > 998 || strings.ContainsAny(text, "\r\n\x00") || text == line && line != "" {
			t.Fatalf("a line of %d bytes, which is longer than 998 or not ended by CRLF: %q", len(line), line)
		}
	}
	m, err := netmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatalf("netmail.ReadMessage: %v: %s", err, data)
	}
	got := received{Header: make(map[string]string)}
	for name, values := range m.Header {
		if len(values) != 1 {
			t.Fatalf("%d headers %s: %q", len(values), name, values)
		}
		decoded, err := new(mime.WordDecoder).DecodeHeader(values[0])
		if err != nil {
			t.Fatalf("DecodeHeader(%q): %v", values[0], err)
		}
		got.Header[name] = decoded
	}
	got.Parts = leaves(t, "", textproto.MIMEHeader(m.Header), m.Body)
	delete(got.Header, "Content-Type")
	delete(got.Header, "Content-Transfer-Encoding")
	return got
}

func leaves(t testing.TB, in string, header textproto.MIMEHeader, body io.Reader) (all []part) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		t.Fatalf("mime.ParseMediaType(%q): %v", header.Get("Content-Type"), err)
	}
	if strings.HasPrefix(kind, "multipart/") {
		for parts := multipart.NewReader(body, parameters["boundary"]); ; {
			p, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return all
			}
			if err != nil {
				t.Fatalf("NextRawPart: %v", err)
			}
			all = append(all, leaves(t, strings.TrimPrefix(in+" "+kind, " "), p.Header, p)...)
		}
	}
	return []part{{in, header.Get("Content-Type"), header.Get("Content-Disposition"), decoded(t, header.Get("Content-Transfer-Encoding"), body)}}
}

func decoded(t testing.TB, encoding string, body io.Reader) string {
	t.Helper()
	switch encoding {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	default:
		t.Fatalf("the encoding is %q", encoding)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("io.ReadAll: %v", err)
	}
	return string(text)
}

func newServer(t testing.TB, fake *smtptest.Server, from string) *mail.Server {
	t.Helper()
	s, err := mail.New(mail.Config{URL: "smtp://" + fake.Address, From: from, Roots: fake.Roots})
	if err != nil {
		t.Fatalf("mail.New: %v", err)
	}
	return s
}

func last(t testing.TB, fake *smtptest.Server) smtptest.Mail {
	t.Helper()
	mails := fake.Mails()
	if len(mails) == 0 {
		t.Fatal("no mail was taken")
	}
	return mails[len(mails)-1]
}

var calendar = []byte("BEGIN:VCALENDAR\r\nMETHOD:CANCEL\r\nEND:VCALENDAR\r\n")

// A mail client finds each part where it looks for it.
func TestMail(t *testing.T) {
	fake := smtptest.Start(t, smtptest.Options{})
	text := "Hello,\n.\n..\nit is at 8 p.m. – see you! " + strings.Repeat("x", 3000) + "\n"
	crlf := strings.ReplaceAll(text, "\n", "\r\n")
	const mixed, alternative = "multipart/mixed", "multipart/mixed multipart/alternative"
	header := func(more map[string]string) map[string]string {
		all := map[string]string{
			"Mime-Version": "1.0", "Auto-Submitted": "auto-generated", "From": `"The Daily" <events@example.com>`, "To": "<jo@example.org>",
			"Subject": "Reading", "Message-Id": "<7f.1@example.com>",
		}
		maps.Copy(all, more)
		return all
	}
	for _, tt := range []struct {
		name string
		mail mail.Message
		want received
	}{
		{"text alone", mail.Message{Text: text}, received{header(nil), []part{{"", "text/plain; charset=UTF-8", "", crlf}}}},
		{"HTML alone", mail.Message{HTML: "<p>Hi\n"}, received{header(nil), []part{{"", "text/html; charset=UTF-8", "", "<p>Hi\r\n"}}}},
		{"both", mail.Message{Text: text, HTML: "<p>Hi"}, received{header(nil), []part{
			{"multipart/alternative", "text/plain; charset=UTF-8", "", crlf},
			{"multipart/alternative", "text/html; charset=UTF-8", "", "<p>Hi"},
		}}},
		{
			"all there is",
			mail.Message{
				ToName: "Jo \"J.\" Müller", Text: text, HTML: "<p>Hi", Language: "de-CH", Calendar: calendar, Method: "CANCEL",
				Unsubscribe: "https://news.example.com/leave?e=ü&k=a b>", OneClick: true, ReplyTo: "desk@bücher.example",
			},
			received{header(map[string]string{
				"To": `Jo "J." Müller <jo@example.org>`, "Content-Language": "de-CH", "Reply-To": "<desk@xn--bcher-kva.example>",
				"List-Unsubscribe": "<https://news.example.com/leave?e=%C3%BC&k=a%20b%3E>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
			}), []part{
				{alternative, "text/plain; charset=UTF-8", "", crlf},
				{alternative, "text/html; charset=UTF-8", "", "<p>Hi"},
				{alternative, "text/calendar; method=CANCEL; charset=UTF-8", "", string(calendar)},
				{mixed, `application/ics; name="event.ics"`, `attachment; filename="event.ics"`, string(calendar)},
			}},
		},
		{
			"what is no use is left out",
			mail.Message{Text: "Hi", ToName: "\u202e", Language: "in German", Unsubscribe: "http://news.example.com/leave", OneClick: true, ReplyTo: "nobody"},
			received{header(map[string]string{"List-Unsubscribe": "<http://news.example.com/leave>"}), []part{
				{"", "text/plain; charset=UTF-8", "", "Hi\r\n"}, // SMTP ends each line
			}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.mail.To, tt.mail.Subject, tt.mail.ID = "jo@example.org", "Reading", "7f.1"
			if err := newServer(t, fake, from).Send(t.Context(), tt.mail); err != nil {
				t.Fatalf("Send: %v", err)
			}
			mail := last(t, fake)
			got := read(t, mail.Data)
			if _, err := time.Parse(time.RFC1123Z, got.Header["Date"]); err != nil {
				t.Errorf("Date: %v", err)
			}
			delete(got.Header, "Date")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the mail (-want +got):\n%s", diff)
			}
			if mail.From != "<events@example.com> BODY=8BITMIME" || mail.To != "<jo@example.org>" {
				t.Errorf("envelope: %s %s", mail.From, mail.To)
			}
		})
	}
}

func TestNoMail(t *testing.T) {
	fake := smtptest.Start(t, smtptest.Options{})
	valid := mail.Message{To: "jo@example.org", ID: "1"}
	for _, tt := range []struct {
		name   string
		change func(*mail.Message)
		want   string
	}{
		{"no address", func(m *mail.Message) { m.To = "" }, "the mail was refused: 553 the address is not valid"},
		{"two addresses", func(m *mail.Message) { m.To = "a@example.org>, <b@example.org" }, "the mail was refused: 553 the address is not valid"},
		{"an address with a line", func(m *mail.Message) { m.To = "a@example.org\r\nRCPT TO:<b@example.org>" }, "the mail was refused: 553 the address is not valid"},
		{"a long address", func(m *mail.Message) { m.To = strings.Repeat("a", 400) + "@example.org" }, "the mail was refused: 553 the address is not valid"},
		{"characters beyond ASCII", func(m *mail.Message) { m.To = "jö@example.org" }, "the mail was refused: 553 the server takes no address with characters outside ASCII"},
		{"too big", func(m *mail.Message) { m.HTML = strings.Repeat("a", 1<<20+1) }, "the mail was refused: 552 the mail is bigger than 1 MiB"},
		{"no ID", func(m *mail.Message) { m.ID = "" }, "the mail has no valid ID"},
		{"an ID with a line", func(m *mail.Message) { m.ID = "1\r\nBcc: x" }, "the mail has no valid ID"},
		{"no URL", func(m *mail.Message) { m.Unsubscribe = "mailto:x@example.org" }, "the address to unsubscribe at is no URL"},
		{"a long URL", func(m *mail.Message) { m.Unsubscribe = "https://a.example/" + strings.Repeat("a", 1000) }, "the address to unsubscribe at does not fit into a header"},
		{"a method", func(m *mail.Message) { m.Calendar, m.Method = calendar, "PUBLISH\r\n" }, "the calendar file has an unknown method"},
	} {
		m := valid
		tt.change(&m)
		if err := newServer(t, fake, from).Send(t.Context(), m); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if mails := fake.Mails(); mails != nil {
		t.Errorf("taken: %+v", mails)
	}
}

// A server that takes SMTPUTF8 gets it for an address that needs it, and for no other.
func TestAddressBeyondASCII(t *testing.T) {
	fake := smtptest.Start(t, smtptest.Options{Extensions: []string{"SMTPUTF8"}})
	for to, want := range map[string][2]string{
		"jö@bücher.example":    {"<events@example.com> BODY=8BITMIME SMTPUTF8", "<jö@xn--bcher-kva.example>"},
		"jo@bücher.example":    {"<events@example.com> BODY=8BITMIME", "<jo@xn--bcher-kva.example>"},
		`"jo doe"@example.org`: {"<events@example.com> BODY=8BITMIME", `<"jo doe"@example.org>`},
	} {
		if err := newServer(t, fake, from).Send(t.Context(), mail.Message{To: to, ID: "1"}); err != nil {
			t.Fatalf("Send to %s: %v", to, err)
		}
		if got := last(t, fake); [2]string{got.From, got.To} != want {
			t.Errorf("to %s: %s, %s, want %s", to, got.From, got.To, want)
		}
	}
}

// Names and titles are written by strangers. Whatever they write, the mail has the headers and parts that it is to have.
func FuzzMail(f *testing.F) {
	fake := smtptest.Start(f, smtptest.Options{})
	for _, hostile := range []string{
		"", "a\r\nBcc: b@example.org", "a\r\n\r\nbody", "=?utf-8?q?a=0D=0ABcc:_b?=", "\x00\xff\xfe", "\u202eevil\u2066", "\u2069\u2068a\u2068=\u2068?b\u2069\u2067", ".\n.\r\n..\r.\n",
		strings.Repeat("ü", 50_000), strings.Repeat("a", 100_000), strings.Repeat(" a\t", 300), `"<x@example.org>,`, "\u2028=\u202e?", "--\r\n--a--\r\n", "a\rb\n", "ü\\",
	} {
		f.Add(hostile, "Reading", "Hi", "<p>Hi")
		f.Add("Jo", hostile, "Hi", "<p>Hi")
		f.Add("Jo", "Reading", hostile, hostile)
	}
	f.Fuzz(func(t *testing.T, name, subject, text, html string) {
		if len(text)+len(html) > 1<<19 {
			t.Skip("is too big")
		}
		m := mail.Message{To: "jo@example.org", ToName: name, Subject: subject, Text: "t" + text, HTML: "h" + html, ID: "1", Calendar: []byte(text + "x"), Language: name, ReplyTo: subject}
		if err := newServer(t, fake, from).Send(t.Context(), m); err != nil {
			t.Fatalf("Send: %v", err)
		}
		got := read(t, last(t, fake).Data)
		balanced(t, got.Header["Subject"])
		balanced(t, mail.PersonName(name))
		addressees, err := netmail.ParseAddressList(netmail.Header{"To": {headerOf(t, last(t, fake).Data, "To")}}["To"][0])
		if err != nil || len(addressees) != 1 || addressees[0].Address != m.To || addressees[0].Name != mail.PersonName(name) {
			t.Errorf("To: %v, %v, want %q", addressees, err, mail.PersonName(name))
		}
		for _, of := range []string{"Date", "To", "Content-Language", "Reply-To"} {
			delete(got.Header, of)
		}
		const alternative = "multipart/mixed multipart/alternative"
		want := received{
			map[string]string{
				"Mime-Version": "1.0", "Auto-Submitted": "auto-generated", "From": `"The Daily" <events@example.com>`, "Message-Id": "<1@example.com>",
				"Subject": mail.HeaderText(subject, 250),
			},
			[]part{
				{alternative, "text/plain; charset=UTF-8", "", bodyText("t" + text)},
				{alternative, "text/html; charset=UTF-8", "", bodyText("h" + html)},
				{alternative, "text/calendar; method=PUBLISH; charset=UTF-8", "", text + "x"},
				{"multipart/mixed", `application/ics; name="event.ics"`, `attachment; filename="event.ics"`, text + "x"},
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the mail (-want +got):\n%s", diff)
		}
	})
}

// bodyText is what a client reads of a text.
func bodyText(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	return strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(text)
}

func TestHeaderText(t *testing.T) {
	for text, want := range map[string]string{
		"Reading":                                     "Reading",
		" a\r\nBcc:\tb@c\x00\u2028d ":                 "a Bcc: b@c d",
		"\u202eevil\u2066 \u200fשלום":                 "evil שלום",
		"=\u202e?utf-8?q?a?=":                         "= ?utf-8?q?a?=",
		"\u2068Party\u2069: \u2067a":                  "\u2068Party\u2069: a",
		"\u2068a\u2068b\u2069":                        "a\u2068b\u2069",
		"a \u2069 b\u2068":                            "a b",
		"=\u2069?":                                    "= ?",
		"\u2068" + strings.Repeat("a", 20) + "\u2069": strings.Repeat("a", 19) + "…",
		"a\xffb":                "a\uFFFDb",
		strings.Repeat("ü", 21): strings.Repeat("ü", 20) + "…",
		strings.Repeat("\u202e", 39) + strings.Repeat("a", 100): "a…",
	} {
		if got := mail.HeaderText(text, 20); got != want {
			t.Errorf("HeaderText(%q) = %q, want %q", text, got, want)
		}
	}
}

// balanced fails for an isolate that does not end, an end of none, and what else turns the direction of characters.
func balanced(t *testing.T, text string) {
	t.Helper()
	depth := 0
	for _, r := range text {
		switch {
		case r == '\u2068':
			depth++
		case r == '\u2069':
			depth--
		case unicode.Is(unicode.Bidi_Control, r):
			t.Errorf("%q has %U, want none", text, r)
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		t.Errorf("%q: isolates are not balanced", text)
	}
}

func headerOf(t *testing.T, data, name string) string {
	t.Helper()
	m, err := netmail.ReadMessage(bufio.NewReader(bytes.NewBufferString(data)))
	if err != nil {
		t.Fatalf("netmail.ReadMessage: %v", err)
	}
	return m.Header.Get(name)
}
