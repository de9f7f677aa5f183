// Package smtptest is an SMTP server for tests, on loopback, that keeps what it gets and
// misbehaves on request.
package smtptest

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"math/big"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// Host is a name that is not of this machine, for which the server has a certificate too.
const Host = "smtp.example.com"

// Options are of one server. The zero value offers STARTTLS and no way to sign in.
type Options struct {
	TLS        bool // from the first byte
	NoSTARTTLS bool

	// User and Password are what AUTH takes. Mechanisms are offered: "PLAIN LOGIN" unless others are given.
	User, Password, Mechanisms string

	// Extensions are further lines of the answer to EHLO, such as SMTPUTF8.
	Extensions []string
}

// Fault is what a server does at a command instead of answering.
type Fault struct {
	Reply   string // is sent: lines of a reply, without their ends
	Hang    bool   // nothing is sent until the test ends, or At has the server do something else: then that is sent
	Endless bool   // a reply that has no end, as fast as the client takes it
	Drip    bool   // a reply that has no end, a byte now and then
	Drop    bool   // the connection is closed, behind the reply if there is one
}

// Mail is one that was taken.
type Mail struct {
	From, To string // as they were in MAIL and RCPT, with what stood behind the address
	User     string // that had signed in
	TLS      bool
	Data     string // as it was sent, without the dots that SMTP adds
}

// Server is one that runs until its test ends.
type Server struct {
	// Address is host and port.
	Address string

	// Roots has the authority of its certificate.
	Roots *x509.CertPool

	options  Options
	listener net.Listener
	tls      *tls.Config
	ended    chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex
	faults   map[string]Fault
	changed  map[string]chan struct{} // is closed when the fault at a command changes
	mails    []Mail
	commands []string
	seen     map[string]chan struct{}
	open     map[net.Conn]bool
}

// Start starts a server.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	s := &Server{
		Address: listener.Addr().String(), options: options, listener: listener, ended: make(chan struct{}),
		faults: make(map[string]Fault), changed: make(map[string]chan struct{}), seen: make(map[string]chan struct{}), open: make(map[net.Conn]bool),
	}
	s.tls, s.Roots = certificate(t)
	s.running.Go(s.accept)
	t.Cleanup(func() {
		close(s.ended)
		listener.Close()
		s.mu.Lock()
		for conn := range s.open {
			conn.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return s
}

// At has the server do something else at a command, from now on: GREETING, EHLO, HELO, STARTTLS, AUTH, MAIL,
// RCPT, DATA, CONTENT (behind the dot), NOOP, RSET or QUIT. The zero Fault takes that back.
func (s *Server) At(command string, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[command] = fault
	close(channel(s.changed, command))
	delete(s.changed, command)
}

// Seen is closed when a command has come.
func (s *Server) Seen(command string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return channel(s.seen, command)
}

func channel(of map[string]chan struct{}, command string) chan struct{} {
	if of[command] == nil {
		of[command] = make(chan struct{})
	}
	return of[command]
}

// Mails are those that were taken so far.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Commands are the names of all that came so far.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[conn] = true
		s.mu.Unlock()
		s.running.Go(func() {
			defer func() {
				conn.Close()
				s.mu.Lock()
				delete(s.open, conn)
				s.mu.Unlock()
			}()
			s.serve(conn)
		})
	}
}

// dialogue is one connection.
type dialogue struct {
	*Server
	conn net.Conn
	text *textproto.Reader
	mail Mail
}

func (s *Server) serve(conn net.Conn) {
	d := &dialogue{Server: s}
	d.use(conn, false)
	if s.options.TLS {
		d.use(tls.Server(conn, s.tls), true)
	}
	if !d.answer("GREETING", "220 test ESMTP") {
		return
	}
	for {
		line, err := d.text.ReadLine()
		if err != nil {
			return
		}
		name, rest, _ := strings.Cut(line, " ")
		if !d.handle(strings.ToUpper(name), rest) {
			return
		}
	}
}

func (d *dialogue) use(conn net.Conn, isTLS bool) {
	d.conn, d.text = conn, textproto.NewReader(bufio.NewReader(conn))
	d.mail.TLS = isTLS
}

// handle reports whether the connection goes on.
func (d *dialogue) handle(name, rest string) bool {
	switch name {
	case "EHLO":
		return d.answer(name, "250-test", d.extensions()...)
	case "STARTTLS":
		if !d.answer(name, "220 go on") {
			return false
		}
		d.use(tls.Server(d.conn, d.tls), true)
		return true
	case "AUTH":
		return d.signIn(rest)
	case "MAIL":
		d.mail.From = strings.TrimPrefix(rest, "FROM:")
	case "RCPT":
		d.mail.To = strings.TrimPrefix(rest, "TO:")
	case "DATA":
		return d.take()
	case "QUIT":
		d.answer(name, "221 bye")
		return false
	case "HELO", "NOOP", "RSET":
	default:
		return d.answer(name, "502 what is that")
	}
	return d.answer(name, "250 fine")
}

func (d *dialogue) extensions() []string {
	lines := []string{"250-8BITMIME"}
	for _, extension := range d.options.Extensions {
		lines = append(lines, "250-"+extension)
	}
	if !d.mail.TLS && !d.options.NoSTARTTLS {
		lines = append(lines, "250-STARTTLS")
	}
	if d.options.User != "" {
		lines = append(lines, "250-AUTH "+d.mechanisms())
	}
	return append(lines, "250 ENHANCEDSTATUSCODES")
}

func (d *dialogue) mechanisms() string {
	if d.options.Mechanisms == "" {
		return "PLAIN LOGIN"
	}
	return d.options.Mechanisms
}

func (d *dialogue) signIn(rest string) bool {
	mechanism, initial, _ := strings.Cut(rest, " ")
	var user, password string
	switch mechanism {
	case "PLAIN":
		plain, _ := base64.StdEncoding.DecodeString(initial)
		if fields := strings.Split(string(plain), "\x00"); len(fields) == 3 {
			user, password = fields[1], fields[2]
		}
	case "LOGIN":
		user, password = d.ask("Username:"), d.ask("Password:")
	}
	if user != d.options.User || password != d.options.Password {
		return d.answer("AUTH", "535 5.7.8 no such user, or another password")
	}
	d.mail.User = user
	return d.answer("AUTH", "235 2.7.0 welcome")
}

func (d *dialogue) ask(question string) string {
	io.WriteString(d.conn, "334 "+base64.StdEncoding.EncodeToString([]byte(question))+"\r\n")
	line, _ := d.text.ReadLine()
	answer, _ := base64.StdEncoding.DecodeString(line)
	return string(answer)
}

func (d *dialogue) take() bool {
	if !d.answer("DATA", "354 go on") {
		return false
	}
	if d.fault("DATA").Reply != "" {
		return true
	}
	d.mail.Data = ""
	var data strings.Builder
	for { // textproto's own reader would turn each CRLF into LF
		line, err := d.text.R.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		data.WriteString(strings.TrimPrefix(line, "."))
	}
	d.mail.Data = data.String()
	if d.fault("CONTENT").Reply == "" { // as it may have been taken when the answer is lost
		d.mu.Lock()
		d.mails = append(d.mails, d.mail)
		d.mu.Unlock()
	}
	return d.answer("CONTENT", "250 2.0.0 taken")
}

func (s *Server) fault(command string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults[command]
}

// answer reports whether the connection goes on.
func (d *dialogue) answer(command, first string, more ...string) bool {
	d.mu.Lock()
	d.commands = append(d.commands, command)
	if seen := channel(d.seen, command); !closed(seen) {
		close(seen)
	}
	fault, changed := d.faults[command], channel(d.changed, command)
	d.mu.Unlock()
	for fault.Hang {
		select {
		case <-d.ended:
			return false
		case <-changed:
		}
		d.mu.Lock()
		fault, changed = d.faults[command], channel(d.changed, command)
		d.mu.Unlock()
	}
	reply := strings.Join(append([]string{first}, more...), "\r\n")
	switch {
	case fault.Endless, fault.Drip:
		d.goOn(first[:3]+"-more of it\r\n", fault.Drip)
		return false
	case fault.Reply != "":
		reply = strings.ReplaceAll(fault.Reply, "\n", "\r\n")
	case fault.Drop:
		return false
	}
	_, err := io.WriteString(d.conn, reply+"\r\n")
	return err == nil && !fault.Drop
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// goOn sends a line again and again, until the client or the test ends.
func (d *dialogue) goOn(line string, slowly bool) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		sent := strings.Repeat(line, 100)
		if slowly {
			sent = line[i%len(line) : i%len(line)+1]
			select {
			case <-tick.C:
			case <-d.ended:
				return
			}
		}
		if _, err := io.WriteString(d.conn, sent); err != nil {
			return
		}
	}
}

// certificate is of an authority that only this server's test knows.
func certificate(t testing.TB) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("ecdsa.GenerateKey: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(1, 0, 0),
		DNSNames: []string{"localhost", Host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("x509.CreateCertificate: %v", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("x509.ParseCertificate: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, roots
}
