// Package mail sends one mail at a time to an SMTP server. What is sent, and when it is tried
// again, is for others to say: an error is either a [*Refusal], which no retry changes, or worth a retry.
//
// The messages are put together by go-mail, whose package smtp speaks the protocol. What a
// server says is never trusted: its replies are bounded in bytes, each attempt is bounded in
// time, and texts of errors have neither the password nor the recipient's address.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
)

// Config is how mails of a site are sent. It can be compared.
type Config struct {
	// URL is smtp://user:password@host:port for a server with STARTTLS, or smtps://… for one with TLS
	// from the first byte. The ports are 587 and 465 unless others are written. Without a user nobody signs in.
	URL string

	// From is one address, with a name or without: The Daily <events@example.com>.
	From string

	// Roots are the certificate authorities that are trusted. Default: the system's.
	Roots *x509.CertPool
}

// Server sends mails. It may be used by many goroutines at once, and holds no connection between mails.
type Server struct {
	host, address  string // without and with the port
	dialed         string // address, but in tests
	isLoopback     bool
	isTLS          bool // from the first byte
	user, password string
	from           netmail.Address
	domain         string // of from
	roots          *x509.CertPool
}

var (
	errURL = errors.New("no address of an SMTP server: write it as smtp://user:password@smtp.example.com:587, or smtps:// for TLS from the first byte" +
		" (in the user and the password, what is no letter or digit is percent-encoded: @ is %40, / is %2F, # is %23)")
	errFrom = errors.New("no address to send from: write one, such as events@example.com, or with a name: The Daily <events@example.com>")
)

// New checks a configuration. It connects to nobody. An error says what to write instead; it has nothing of the URL.
func New(cfg Config) (*Server, error) {
	s := &Server{roots: cfg.Roots}
	if err := s.useURL(cfg.URL); err != nil {
		return nil, err
	}
	if err := s.useFrom(cfg.From); err != nil {
		return nil, err
	}
	return s, nil
}

// CheckURL is the part of [New] that is about Config.URL.
func CheckURL(text string) error { return new(Server).useURL(text) }

// CheckFrom is the part of [New] that is about Config.From.
func CheckFrom(text string) error { return new(Server).useFrom(text) }

func (s *Server) useURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return errURL // without err, which has the password
	}
	port := map[string]string{"smtp": "587", "smtps": "465"}[u.Scheme]
	if port == "" || u.Hostname() == "" {
		return errURL
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return errURL
	}
	s.user = u.User.Username()
	s.password, _ = u.User.Password()
	if (s.user == "") != (s.password == "") {
		return errors.New("a user without a password, or a password without a user: write both, as in smtp://user:password@smtp.example.com, or neither")
	}
	if strings.ContainsFunc(s.user+s.password, unicode.IsControl) {
		return errors.New("the user or the password has a control character, such as the end of a line: write it without")
	}
	s.host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip, err := netip.ParseAddr(s.host)
	if err != nil {
		if s.host, err = hostname.ToASCII(s.host); err != nil || s.host == "" {
			return errURL
		}
	}
	s.isLoopback = ip.Unmap().IsLoopback() || s.host == "localhost" || strings.HasSuffix(s.host, ".localhost")
	s.isTLS = u.Scheme == "smtps"
	s.address = net.JoinHostPort(s.host, port)
	s.dialed = s.address
	return nil
}

func (s *Server) useFrom(text string) error {
	parsed, err := netmail.ParseAddress(text)
	if err != nil || !utf8Clean(text) || strings.HasSuffix(strings.TrimSpace(text), ";") { // which ends a group
		return errFrom
	}
	address, err := toASCII(parsed.Address)
	if err != nil || !isASCII(address) {
		return errFrom
	}
	s.from = netmail.Address{Name: personName(parsed.Name), Address: address}
	s.domain = address[strings.LastIndex(address, "@")+1:]
	return nil
}

// Host is the name and the port of the server.
func (s *Server) Host() string { return s.address }

// From is the address that mails are from, with its name if it has one.
func (s *Server) From() string {
	if s.from.Name == "" {
		return s.from.Address
	}
	return s.from.Name + " <" + s.from.Address + ">"
}

func (s *Server) tls() *tls.Config {
	// On this machine TLS protects from nobody, and local servers have certificates that they made themselves.
	return &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.isLoopback && !s.isTLS}
}

// Deferral means that the server takes this mail, or mails to this recipient, later: with a 4xx to RCPT or DATA, as greylisting does. It
// says nothing of other mails.
type Deferral Refusal

func (d *Deferral) Error() string {
	return fmt.Sprintf("the mail server takes it later: %d %s", d.Code, d.Text)
}

// Refusal means that the server has refused this mail, or this recipient, for good: with a 5xx to
// RCPT or DATA. Some are found here, before the server is asked: an address that none can have, and a mail that is too big.
type Refusal struct {
	Code int

	// Text is what the server said: one line of at most 300 printable characters, without the recipient's address.
	Text string
}

func (r *Refusal) Error() string { return fmt.Sprintf("the mail was refused: %d %s", r.Code, r.Text) }

// Send sends a mail to its recipient. Errors: a *Refusal; all others are worth another attempt. A mail of which the server
// did not confirm that it has it may have been sent all the same: the next attempt has the same Message-ID.
func (s *Server) Send(ctx context.Context, m Message) error {
	mail, err := s.prepare(m)
	if err != nil {
		return err
	}
	return s.attempt(ctx, mail.deliver)
}

// Check connects as [Server.Send] does, signs in, and leaves. Nothing is sent.
func (s *Server) Check(ctx context.Context) error {
	return s.attempt(ctx, func(in *session) error {
		if err := in.client.Noop(); err != nil {
			return in.failure("NOOP failed", err)
		}
		return nil
	})
}
