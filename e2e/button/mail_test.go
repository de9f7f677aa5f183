package button

import (
	"bufio"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/mail"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// message is a mail that has arrived.
type message struct{ to, text string }

// mailbox takes all mail.
type mailbox chan message

func (m mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &delivery{box: m}, nil }

type delivery struct {
	box mailbox
	to  string
}

func (d *delivery) Mail(string, *smtp.MailOptions) error { return nil }

func (d *delivery) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.to = to
	return nil
}

func (d *delivery) Data(r io.Reader) error {
	text, err := textOf(r)
	d.box <- message{d.to, text}
	return err
}

// textOf returns all text in a mail.
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

// startMail starts a server that takes mail, and returns its port.
func startMail(t *testing.T) (box mailbox, port string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	box = make(mailbox, 10)
	server := smtp.NewServer(box)
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return box, port
}

// startGhost starts a Ghost of its own, which readers see at an address, and
// returns where it is, and its key.
func startGhost(t *testing.T, seenAt, smtpPort string) (url, key string) {
	t.Helper()
	cmd := exec.Command("bash", "../ghost/start")
	cmd.Env = append(os.Environ(), "LYCHGATE_GHOST_URL="+seenAt, "LYCHGATE_GHOST_SMTP="+smtpPort)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(strings.TrimPrefix(line, "LYCHGATE_TEST_GHOST="))
	return fields[0], fields[1]
}

const ghostCaddyfile = `{
	admin off
	persist_config off
	storage file_system {{folder}}/data
	lychgate {
		store sqlite {{folder}}/lychgate.db
		resolvers {{dns}}
		site daily {
			hosts localhost
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
			}
			integration crm {
				key a-key-for-the-crm-0123456789abcdef
			}
		}
	}
}

http://localhost:{{port}} {
	bind fd/3
	inbox_provider
	members_api
	theme_manifest
	reverse_proxy {{front}}
}
`

// The whole way of a reader: a CRM has made them a member; on the site's page,
// which Caddy serves from a real Ghost, they ask for a link to sign in; the link
// is mailed, and the button opens their inbox. The tag is the one that the
// command prints.
func TestSignInThroughCaddy(t *testing.T) {
	if browser == nil {
		need(t, lacks)
	}
	sharedGhost(t) // where there is one, another can be started
	portal := asset(t, "portal.min.js")
	listener, port, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	box, smtpPort := startMail(t)
	ghost, key := startGhost(t, "http://localhost:"+port, smtpPort)
	site, stop, err := runCaddy(t.TempDir(), listener, strings.NewReplacer("{{ghost}}", ghost, "{{front}}", front(t, ghost, portal), "{{key}}", key).Replace(ghostCaddyfile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	const address = "jane@company.example"
	request, err := http.NewRequest(http.MethodPost, site+"/integration/members", strings.NewReader(`{"email":"`+address+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer a-key-for-the-crm-0123456789abcdef")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	created, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Lychgate-Sync") != "" {
		t.Fatalf("%s: %s", response.Status, created)
	}
	tag, err := exec.Command(caddyBinary, "lychgate", "inbox-button", "--sender", "noreply@daily.example").Output()
	if err != nil {
		t.Fatal(err)
	}
	inject(t, site, string(tag))

	p := open(t, site+"/", phoneOrDesktop(1280, 800, false))
	p.until("listening.size > 0 && [...document.querySelectorAll('form[data-members-form]')].every(form => listening.has(form))")
	p.keys("form[data-members-form] [data-members-email]", address+"\r")
	p.until("!!document.querySelector('form.success')")
	diff(t, "link", "https://outlook.office.com/mail/?login_hint=jane%40company.example", p.shown().Href)
	p.picture("sign-in")
	for patience := time.After(time.Minute); ; {
		select {
		case got := <-box:
			if got.to != address { // Ghost greets its owner too
				continue
			}
			if !strings.Contains(got.text, site+"/members/?token=") {
				t.Errorf("the mail: %s", got.text)
			}
			return
		case <-patience:
			t.Fatal("no mail has arrived")
		}
	}
}
