package mail_test

import (
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/mail"
)

const from = "The Daily <events@example.com>"

func TestNew(t *testing.T) {
	for _, tt := range []struct{ url, from, host, written string }{
		{"smtp://user:pass@smtp.example.com", "events@example.com", "smtp.example.com:587", "events@example.com"},
		{"smtps://user:pass@smtp.example.com/", from, "smtp.example.com:465", from},
		{"SMTP://SMTP.Example.com.:2525", `"The Daily" <events@example.com>`, "smtp.example.com:2525", from},
		{"smtp://a%40b:p%2F%3A%23@[2001:db8::1]:25", "Käse\u202e Blatt <käse+1@xn--ksblatt-5wa.example>", "", ""},
		{"smtp://smtp.bücher.example", "Bücher <post@bücher.example>", "smtp.xn--bcher-kva.example:587", "Bücher <post@xn--bcher-kva.example>"},
		{"smtp://[2001:db8::1]:25", from, "[2001:db8::1]:25", from},
	} {
		s, err := mail.New(mail.Config{URL: tt.url, From: tt.from})
		if tt.host == "" {
			if err == nil {
				t.Errorf("New(%q, %q) = nil, want an error", tt.url, tt.from)
			}
			continue
		}
		if err != nil {
			t.Errorf("New(%q, %q): %v", tt.url, tt.from, err)
			continue
		}
		if s.Host() != tt.host || s.From() != tt.written {
			t.Errorf("New(%q, %q) = %s, %s, want %s, %s", tt.url, tt.from, s.Host(), s.From(), tt.host, tt.written)
		}
	}
}

// The operator reads what to write instead, and the log has no password.
func TestMistakes(t *testing.T) {
	const url, address = "no address of an SMTP server: write it as smtp://", "no address to send from: write one"
	for _, tt := range []struct{ url, from, want string }{
		{"", from, url},
		{"smtp.example.com:587", from, url},
		{"https://user:hunter2@smtp.example.com", from, url},
		{"smtp://user:hunter2@", from, url},
		{"smtp://user:hunter2@smtp.example.com:0", from, url},
		{"smtp://user:hunter2@smtp.example.com:65536", from, url},
		{"smtp://user:hunter2/more@smtp.example.com", from, url},
		{"smtp://user:hunter2#more@smtp.example.com", from, url},
		{"smtp://user:hunter2?more@smtp.example.com", from, url},
		{"smtp://user:hunter2%zz@smtp.example.com", from, url},
		{"smtp://user:hunter2@smtp.example.com/path", from, url},
		{"smtp://user:hunter2@smtp.example.com?tls=no", from, url},
		{"smtp://user:hunter2@a b", from, url},
		{"smtp:user:hunter2@smtp.example.com", from, url},
		{"smtp://user@smtp.example.com", from, "a user without a password"},
		{"smtp://:hunter2@smtp.example.com", from, "a password without a user"},
		{"smtp://user:hunter2%0a@smtp.example.com", from, "has a control character"},
		{"smtp://user:hunter2@smtp.example.com", "", address},
		{"smtp://user:hunter2@smtp.example.com", "The Daily", address},
		{"smtp://user:hunter2@smtp.example.com", "a@example.com, b@example.com", address},
		{"smtp://user:hunter2@smtp.example.com", "group: a@example.com;", address},
		{"smtp://user:hunter2@smtp.example.com", "käse@example.com", address},
		{"smtp://user:hunter2@smtp.example.com", "a@example.com\r\nBcc: b@example.com", address},
		{"smtp://user:hunter2@smtp.example.com", "a@" + strings.Repeat("a", 300) + ".example", address},
	} {
		_, err := mail.New(mail.Config{URL: tt.url, From: tt.from})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%q, %q): %v, want %q without the password", tt.url, tt.from, err, tt.want)
		}
	}
}
