package mail_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

const password = "hunter2/ü"

// reach is a server with a user, by a scheme and a name.
func reach(t *testing.T, fake *smtptest.Server, scheme, host string) *mail.Server {
	t.Helper()
	_, port, _ := net.SplitHostPort(fake.Address)
	s, err := mail.New(mail.Config{URL: scheme + "://jo:hunter2%2F%C3%BC@" + host + ":" + port, From: from, Roots: fake.Roots})
	if err != nil {
		t.Fatalf("mail.New: %v", err)
	}
	s.DialAt(fake.Address)
	return s
}

var reading = mail.Message{To: "reader@example.org", Subject: "Reading", Text: "Hi", ID: "1"}

// The password goes to the server it is for, over TLS.
func TestSecurity(t *testing.T) {
	for _, tt := range []struct {
		name, scheme, host string
		options            smtptest.Options
		noRoots            bool
		want               string // error, without the address
		tls                bool
	}{
		{name: "STARTTLS", scheme: "smtp", host: smtptest.Host, tls: true},
		{name: "STARTTLS with LOGIN", scheme: "smtp", host: smtptest.Host, options: smtptest.Options{Mechanisms: "NTLM LOGIN"}, tls: true},
		{name: "TLS", scheme: "smtps", host: smtptest.Host, options: smtptest.Options{TLS: true}, tls: true},
		{name: "no STARTTLS", scheme: "smtp", host: smtptest.Host, options: smtptest.Options{NoSTARTTLS: true}, want: " does not offer STARTTLS"},
		{name: "no STARTTLS on this machine", scheme: "smtp", host: "localhost", options: smtptest.Options{NoSTARTTLS: true}},
		{name: "no STARTTLS on this machine, LOGIN", scheme: "smtp", host: "127.0.0.1", options: smtptest.Options{NoSTARTTLS: true, Mechanisms: "LOGIN"}},
		{name: "a certificate of nobody on this machine", scheme: "smtp", host: "localhost", noRoots: true, tls: true},
		{name: "a certificate of nobody", scheme: "smtp", host: smtptest.Host, noRoots: true, want: "certificate signed by unknown authority"},
		{name: "TLS with a certificate of nobody", scheme: "smtps", host: smtptest.Host, options: smtptest.Options{TLS: true}, noRoots: true, want: "certificate signed by unknown authority"},
		{name: "a certificate of another", scheme: "smtp", host: "smtp.example.net", want: "certificate is valid for localhost, smtp.example.com, not smtp.example.net"},
		{name: "TLS where there is none", scheme: "smtps", host: smtptest.Host, want: "first record does not look like a TLS handshake"},
		{name: "no mechanism", scheme: "smtp", host: smtptest.Host, options: smtptest.Options{Mechanisms: "GSSAPI NTLM"}, want: "(it offers: GSSAPI NTLM)"},
		{name: "another password", scheme: "smtp", host: smtptest.Host, options: smtptest.Options{Password: "other"}, want: `as "jo" failed: the server said 535 5.7.8 no such user, or another password`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.options.Password == "" {
				tt.options.Password = password
			}
			tt.options.User = "jo"
			fake := smtptest.Start(t, tt.options)
			if tt.noRoots {
				fake.Roots = nil
			}
			s := reach(t, fake, tt.scheme, tt.host)
			for of, err := range map[string]error{"Check": s.Check(t.Context()), "Send": s.Send(t.Context(), reading)} {
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: %v, want %q", of, err, tt.want)
				}
				checkError(t, err)
			}
			if tt.want != "" {
				if slices.Contains(fake.Commands(), "MAIL") {
					t.Errorf("commands: %q", fake.Commands())
				}
				return
			}
			got := last(t, fake)
			got.Data = ""
			want := smtptest.Mail{From: "<events@example.com> BODY=8BITMIME", To: "<reader@example.org>", User: "jo", TLS: tt.tls}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the mail (-want +got):\n%s", diff)
			}
		})
	}
}

// checkError checks that an error is fit for a log, and no Refusal.
func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if _, ok := errors.AsType[*mail.Refusal](err); ok {
		t.Errorf("a Refusal: %v", err)
	}
	for _, secret := range []string{"hunter2", "aHVudGVyMi/DvA==", "AGpvAGh1bnRlcjIvw7w=", "reader"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error has %q: %v", secret, err)
		}
	}
	if strings.ContainsAny(err.Error(), "\r\n\x00") || len(err.Error()) > 600 {
		t.Errorf("the error is no short line: %q", err)
	}
}

// What a server says decides whether the mail is tried again.
func TestAnswers(t *testing.T) {
	refused := func(code int, text string) *mail.Refusal { return &mail.Refusal{Code: code, Text: text} }
	for _, tt := range []struct {
		at, reply string
		refusal   *mail.Refusal
		want      string // error
	}{
		{at: "GREETING", reply: "554 no", want: " does not greet as an SMTP server: the server said 554 no"},
		{at: "GREETING", reply: "HTTP/1.1 400 Bad Request", want: " does not greet as an SMTP server"},
		{at: "GREETING", reply: "421 busy", want: "the server said 421 busy"},
		{at: "EHLO", reply: "502 what", want: " does not offer STARTTLS"}, // HELO has no extensions
		{at: "STARTTLS", reply: "454 not now", want: "the server said 454 not now"},
		{at: "AUTH", reply: "535 5.7.8 no", want: "the server said 535 5.7.8 no"},
		{at: "AUTH", reply: "454 4.7.0 not now", want: "the server said 454 4.7.0 not now"},
		{at: "AUTH", reply: "500 what is AUTH PLAIN AGpvAGh1bnRlcjIvw7w=", want: "the server said 500 (a text with the password)"},
		{at: "AUTH", reply: "500 " + strings.Repeat("a", 295) + " " + password, want: "the server said 500 (a text with the password)"},
		{at: "AUTH", reply: "500 aHVudGVyMi/DvA==", want: "the server said 500 (a text with the password)"},
		{at: "RCPT", reply: "550 " + strings.Repeat("a", 295) + " reader@example.org (reader READER) and more", refusal: refused(550, strings.Repeat("a", 295)+" … (……")},
		{at: "MAIL", reply: "530 sign in", want: "MAIL failed: the server said 530 sign in"},
		{at: "MAIL", reply: "550 5.7.1 not from there", want: "MAIL failed: the server said 550 5.7.1 not from there"},
		{at: "RCPT", reply: "554 5.7.1 Relay access denied", want: "RCPT failed: the server said 554 5.7.1 Relay access denied"},
		{at: "MAIL", reply: "451 4.7.1 slow down", want: "MAIL failed: the server said 451 4.7.1 slow down"},
		{at: "RCPT", reply: "550-5.1.1 <READER@example.org>:\n550 5.1.1 no user reader here, readers", refusal: refused(550, "5.1.1 <…>: 5.1.1 no user … here, readers")},
		{at: "RCPT", reply: "450 4.2.1 <reader@example.org> greylisted", want: "the mail server takes it later: 450 4.2.1 <…> greylisted"},
		{at: "RCPT", reply: "421 4.3.2 stopping", want: "RCPT failed: the server said 421 4.3.2 stopping"},
		{at: "RCPT", reply: "550 \x1b[31m\u202e" + strings.Repeat("a", 2000), refusal: refused(550, "[31m"+strings.Repeat("a", 296)+"…")},
		{at: "RCPT", reply: "what", want: "RCPT failed"},
		{at: "DATA", reply: "554 no valid recipients", refusal: refused(554, "no valid recipients")},
		{at: "DATA", reply: "451 later", want: "the mail server takes it later: 451 later"},
		{at: "CONTENT", reply: "554 5.7.1 spam", refusal: refused(554, "5.7.1 spam")},
		{at: "CONTENT", reply: "452 4.2.2 full", want: "the mail server takes it later: 452 4.2.2 full"},
		{at: "CONTENT", reply: "421 4.4.2 stopping", want: "DATA failed: the server said 421 4.4.2 stopping"},
		{at: "QUIT", reply: "500 what"},
	} {
		t.Run(tt.at+" "+tt.reply[:3], func(t *testing.T) {
			fake := smtptest.Start(t, smtptest.Options{User: "jo", Password: password})
			fake.At(tt.at, smtptest.Fault{Reply: tt.reply})
			err := reach(t, fake, "smtp", smtptest.Host).Send(t.Context(), reading)
			got, _ := errors.AsType[*mail.Refusal](err)
			if diff := cmp.Diff(tt.refusal, got); diff != "" {
				t.Errorf("the refusal of %v (-want +got):\n%s", err, diff)
			}
			if tt.refusal == nil {
				checkError(t, err)
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Send: %v, want %q", err, tt.want)
				}
			}
		})
	}
}

var steps = []string{"GREETING", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "CONTENT"}

// The mail is tried again if the server goes away before it has confirmed it, and only then.
func TestDropped(t *testing.T) {
	for _, at := range append(steps, "QUIT") {
		for _, fault := range []smtptest.Fault{{Drop: true}, {Drop: true, Reply: "421 4.3.2 stopping"}, {Endless: true}} {
			if at == "STARTTLS" && fault.Endless { // the rest of the reply is no TLS
				continue
			}
			fake := smtptest.Start(t, smtptest.Options{User: "jo", Password: password})
			fake.At(at, fault)
			err := reach(t, fake, "smtp", smtptest.Host).Send(t.Context(), reading)
			if (err == nil) != (at == "QUIT") {
				t.Errorf("%+v at %s: %v", fault, at, err)
			}
			checkError(t, err)
			if mails := fake.Mails(); at == "QUIT" && len(mails) != 1 {
				t.Errorf("%+v at %s: %d mails", fault, at, len(mails))
			}
		}
	}
}

// An attempt ends with its context, whatever the server does.
func TestEndsWithContext(t *testing.T) {
	for _, at := range append(steps, "QUIT") {
		for _, fault := range []smtptest.Fault{{Hang: true}, {Drip: true}} {
			fake := smtptest.Start(t, smtptest.Options{User: "jo", Password: password})
			fake.At(at, fault)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-fake.Seen(at)
				cancel()
			}()
			err := reach(t, fake, "smtp", smtptest.Host).Send(ctx, reading)
			cancel()
			if at == "QUIT" {
				if err != nil {
					t.Errorf("%+v at %s: %v", fault, at, err)
				}
				continue
			}
			checkError(t, err)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%+v at %s: %v, want %v", fault, at, err, context.Canceled)
			}
		}
	}
}

// A server may not make this machine compute for hours.
func TestIterations(t *testing.T) {
	next := mail.Iterations
	for challenge, want := range map[string]bool{
		"r=abc,s=QSXCR+Q6sek8bf92,i=4096":                 false,
		"r=abc,s=QSXCR+Q6sek8bf92,i=2000000000":           true,
		"r=abc,s=QSXCR+Q6sek8bf92,i=99999999999999999999": true,
	} {
		if err := next([]byte(challenge)); (err != nil && strings.Contains(err.Error(), "too many iterations")) != want {
			t.Errorf("%s: %v, want too many: %v", challenge, err, want)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	fake := smtptest.Start(t, smtptest.Options{})
	s := reach(t, fake, "smtp", smtptest.Host)
	s.DialAt("127.0.0.1:1")
	err := s.Check(t.Context())
	checkError(t, err)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot connect to smtp.example.com:") {
		t.Errorf("Check: %v", err)
	}
}
