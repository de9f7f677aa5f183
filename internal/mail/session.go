package mail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

const (
	// attemptTimeout bounds an attempt whose context has a later deadline, or none. A server may scan a mail for minutes
	// before it confirms it (RFC 5321, section 4.5.3.2).
	attemptTimeout = 5 * time.Minute

	// quitTimeout is for the answer to QUIT, which changes nothing.
	quitTimeout = 5 * time.Second

	// maxReceived bounds what a server sends in an attempt, in bytes, with its certificates. Replies are some hundred.
	maxReceived = 256 << 10

	maxSaid = 300 // code points of a server's text

	// maxIterations bounds the work that a server asks for with SCRAM: about half a second. RFC 7677 asks for 4,096.
	maxIterations = 1_000_000
)

// session is one connection, for one attempt.
type session struct {
	*Server
	ctx    context.Context // of the attempt, and no longer kept
	client *smtp.Client
	to     string // no error has it
}

// attempt connects, signs in, does something and leaves. The context bounds all of it.
func (s *Server) attempt(ctx context.Context, do func(*session) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	in := &session{Server: s, ctx: ctx}
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", s.dialed)
	if err != nil {
		return in.failure("cannot connect to "+s.address, err)
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	if err := in.open(&bounded{raw, maxReceived}); err != nil {
		return err
	}
	if err := do(in); err != nil {
		return err
	}
	raw.SetDeadline(time.Now().Add(quitTimeout))
	_ = in.client.Quit() // what was to be done is done
	return nil
}

// open greets the server, and signs in.
func (in *session) open(conn net.Conn) (err error) {
	if in.isTLS {
		secure := tls.Client(conn, in.tls())
		if err := secure.HandshakeContext(in.ctx); err != nil {
			return in.failure("cannot establish TLS with "+in.address, err)
		}
		conn = secure
	}
	if in.client, err = smtp.NewClient(conn, in.host); err != nil {
		return in.failure(in.address+" does not greet as an SMTP server", err)
	}
	if err := in.client.Hello(in.domain); err != nil {
		return in.failure("EHLO failed", err)
	}
	if !in.isTLS {
		offered, _ := in.client.Extension("STARTTLS")
		if !offered && !in.isLoopback {
			return fmt.Errorf("%s does not offer STARTTLS, and nothing is sent without TLS: write smtps:// if it has TLS from the first byte, usually at port 465", in.address)
		}
		if offered {
			if err := in.client.StartTLS(in.tls()); err != nil {
				return in.failure("STARTTLS with "+in.address+" failed", err)
			}
		}
	}
	return in.signIn()
}

// signIn uses the first mechanism of ours that the server offers. go-mail's own choice would be NTLM before
// PLAIN, and nothing that a server on this machine offers without TLS.
func (in *session) signIn() error {
	if in.user == "" {
		return nil
	}
	_, text := in.client.Extension("AUTH")
	offered := strings.Fields(strings.ToUpper(text))
	for _, of := range []struct {
		name string
		auth smtp.Auth
	}{
		{"SCRAM-SHA-256", &bearable{smtp.ScramSHA256Auth(in.user, in.password)}},
		{"SCRAM-SHA-1", &bearable{smtp.ScramSHA1Auth(in.user, in.password)}},
		{"PLAIN", smtp.PlainAuth("", in.user, in.password, in.host, in.isLoopback)},
		{"LOGIN", smtp.LoginAuth(in.user, in.password, in.host, in.isLoopback)},
		{"CRAM-MD5", smtp.CRAMMD5Auth(in.user, in.password)},
	} {
		if !slices.Contains(offered, of.name) {
			continue
		}
		if err := in.client.Auth(of.auth); err != nil {
			return in.failure("signing in at "+in.address+" as "+strconv.Quote(in.user)+" failed", err)
		}
		return nil
	}
	return fmt.Errorf("%s offers no way to sign in that is known here (it offers: %s): write its URL without user and password if it needs none",
		in.address, in.say(cmp.Or(text, "none"), ""))
}

// bearable is SCRAM with a bound on the work that the server asks for.
type bearable struct{ smtp.Auth }

var iterations = regexp.MustCompile(`,i=([0-9]*)`)

func (b *bearable) Next(fromServer []byte, more bool) ([]byte, error) {
	if asked := iterations.FindSubmatch(fromServer); asked != nil && bytes.HasPrefix(fromServer, []byte("r=")) {
		if n, err := strconv.Atoi(string(asked[1])); err != nil || n > maxIterations {
			return nil, errors.New("the server asks for too many iterations of SCRAM")
		}
	}
	return b.Auth.Next(fromServer, more)
}

// deliver hands the mail over.
func (o *outgoing) deliver(in *session) error {
	in.to = strings.Trim(o.to, "<>")
	if offered, _ := in.client.Extension("SMTPUTF8"); o.isUTF8 && !offered {
		return &Refusal{553, "the server takes no address with characters outside ASCII"}
	}
	in.client.SkipSMTPUTF8(!o.isUTF8) // else servers behind this one would need it too
	if err := in.client.Mail(o.from); err != nil {
		return in.failure("MAIL failed", err) // of each mail: the operator may not send from that address
	}
	if err := in.client.Rcpt(o.to); err != nil {
		return in.refusal("RCPT", err)
	}
	data, err := in.client.Data()
	if err != nil {
		return in.refusal("DATA", err)
	}
	_, err = data.Write(o.raw)
	if answer := data.Close(); err == nil || isReply(answer) { // it may refuse a mail before it has all of it
		err = answer
	}
	if err != nil {
		return in.refusal("DATA", err)
	}
	return nil
}

func isReply(err error) bool {
	_, ok := errors.AsType[*textproto.Error](err)
	return ok
}

// refusal is a *Refusal if the server means this mail for good. That somebody should sign in, or that the server relays no mails of
// theirs, is for the operator.
func (in *session) refusal(command string, err error) error {
	reply, ok := errors.AsType[*textproto.Error](err)
	if ok && reply.Code >= 400 && reply.Code < 500 && reply.Code != 421 {
		return &Deferral{reply.Code, in.say(reply.Msg, in.to)}
	}
	if !ok || reply.Code < 500 || reply.Code > 599 || slices.Contains([]int{530, 534, 535, 538}, reply.Code) || command == "RCPT" && relays.MatchString(reply.Msg) {
		return in.failure(command+" failed", err)
	}
	return &Refusal{reply.Code, in.say(reply.Msg, in.to)}
}

// relays matches what servers say that would have to know who sends: "Relay access denied", "relaying not permitted".
var relays = regexp.MustCompile(`(?i)\brelay`)

// failure is worth another attempt. Its text is fit for logs.
func (in *session) failure(what string, err error) error {
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("%s: the server said %d %s", what, reply.Code, in.say(reply.Msg, in.to))
	}
	switch {
	case in.ctx.Err() != nil:
		return fmt.Errorf("%s: no answer in time: %w", what, in.ctx.Err())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the server closed the connection", what)
	}
	return fmt.Errorf("%s: %s", what, in.say(err.Error(), in.to))
}

// say is a text of a server as one line, without the password and the recipient.
func (s *Server) say(text, to string) string {
	said := headerText(text, maxReceived)
	if s.password != "" {
		for _, secret := range []string{
			s.password,
			base64.StdEncoding.EncodeToString([]byte(s.password)),
			base64.StdEncoding.EncodeToString([]byte("\x00" + s.user + "\x00" + s.password)),
		} {
			if strings.Contains(text, secret) || strings.Contains(said, secret) {
				return "(a text with the password)"
			}
		}
	}
	if to != "" {
		said = withoutRecipient(said, to)
	}
	return clipped(said, maxSaid)
}

// withoutRecipient leaves out an address, and its left part where that is a word.
func withoutRecipient(text, to string) string {
	text = regexp.MustCompile(`(?i)`+regexp.QuoteMeta(to)).ReplaceAllLiteralString(text, "…")
	local := to[:strings.LastIndex(to, "@")]
	if len(local) < 3 {
		return text
	}
	word := regexp.MustCompile(`(?i)(^|[^\pL\pN])` + regexp.QuoteMeta(local) + `($|[^\pL\pN])`)
	for range 2 { // what is between two of them is part of one match alone
		text = word.ReplaceAllString(text, "${1}…${2}")
	}
	return text
}

// bounded is a connection from which only so much is read.
type bounded struct {
	net.Conn
	left int
}

var errTooMuch = errors.New("the server sends too much")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
