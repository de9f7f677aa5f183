// Package mailbox takes the mail that a Ghost sends, for tests.
package mailbox

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// Message is a mail that has arrived.
type Message struct{ To, Text string }

// Mailbox takes all mail.
type Mailbox chan Message

// NewSession is called by [smtp.Server], once for each connection.
func (m Mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &delivery{box: m}, nil }

type delivery struct {
	box Mailbox
	to  string
}

func (d *delivery) Mail(string, *smtp.MailOptions) error { return nil }

func (d *delivery) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.to = to
	return nil
}

func (d *delivery) Data(r io.Reader) error {
	text, err := textOf(r)
	d.box <- Message{d.to, text}
	return err
}

// textOf joins the text of all parts of a mail.
func textOf(r io.Reader) (string, error) {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return "", err
	}
	_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for parts := multipart.NewReader(m.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart() // which decodes quoted-printable
		if errors.Is(err, io.EOF) {
			return all.String(), nil
		}
		if err != nil {
			return "", err
		}
		var content io.Reader = part
		if part.Header.Get("Content-Transfer-Encoding") == "base64" {
			content = base64.NewDecoder(base64.StdEncoding, part)
		}
		if _, err := io.Copy(&all, content); err != nil {
			return "", err
		}
	}
}

func (*delivery) Reset()        {}
func (*delivery) Logout() error { return nil }

// Start starts a server that takes mail for a test, and returns its port.
func Start(t testing.TB) (box Mailbox, port string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	box = make(Mailbox, 100)
	server := smtp.NewServer(box)
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return box, port
}

// StartMailgun starts a stand-in for Mailgun, by which Ghost sends newsletters, and returns its URL. A mail to several
// members is a message to each.
func StartMailgun(t testing.TB) (box Mailbox, url string) {
	t.Helper()
	box = make(Mailbox, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/messages") { // what became of mails that were sent
			io.WriteString(w, `{"items":[],"paging":{}}`)
			return
		}
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Errorf("r.ParseMultipartForm: %v", err)
			return
		}
		for _, to := range r.MultipartForm.Value["to"] {
			box <- Message{to, r.FormValue("text") + r.FormValue("html")}
		}
		io.WriteString(w, `{"id":"<1@daily.example>","message":"Queued. Thank you."}`)
	}))
	t.Cleanup(server.Close)
	return box, server.URL + "/v3"
}

// Wait waits a minute for a mail to an address, and drops those to others.
func (m Mailbox) Wait(t testing.TB, to string) string {
	t.Helper()
	for timeout := time.After(time.Minute); ; {
		select {
		case got := <-m:
			if got.To == to {
				return got.Text
			}
		case <-timeout:
			t.Fatalf("no mail to %s has arrived", to)
		}
	}
}
