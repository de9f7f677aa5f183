package mail_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// eximConfig has all mails but those to nobody kept in the queue. The certificate is one that Exim makes. Started by
// root it becomes another user by itself.
const eximConfig = `
primary_hostname = localhost
spool_directory = %[1]s/spool
log_file_path = %[1]s/spool/%%slog
pid_file_path =
keep_environment =
queue_only = true
%[2]s
tls_advertise_hosts = *
acl_smtp_mail = ${if def:authenticated_id {accept}{deny}}
acl_smtp_rcpt = rcpt
acl_smtp_data = accept
begin acl
rcpt:
  deny local_parts = nobody
       message = no user of that name: $local_part@$domain
  accept
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and {{eq{$auth2}{jo}}{eq{$auth3}{secret}}}}
  server_set_id = $auth2
`

// exim is a real server on loopback.
type exim struct{ folder, address string }

func startExim(t *testing.T) *exim {
	t.Helper()
	if _, err := exec.LookPath("exim4"); err != nil {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatalf("exec.LookPath: %v", err)
		}
		t.Skip("needs Exim: apt-get install exim4-daemon-light")
	}
	e := &exim{t.TempDir(), "127.0.0.1:" + freeport.New(t)}
	spool := filepath.Join(e.folder, "spool")
	if err := os.Mkdir(spool, 0o700); err != nil {
		t.Fatalf("os.Mkdir: %v", err)
	}
	for path, mode := range map[string]os.FileMode{spool: 0o777, e.folder: 0o711, filepath.Dir(e.folder): 0o711} { // where root runs the test, Exim becomes another user
		if err := os.Chmod(path, mode); err != nil {
			t.Fatalf("os.Chmod: %v", err)
		}
	}
	as := ""
	if os.Getuid() != 0 {
		as = fmt.Sprintf("admin_groups = %[2]d\nexim_user = %[1]d\nexim_group = %[2]d", os.Getuid(), os.Getgid())
	}
	if err := os.WriteFile(filepath.Join(e.folder, "conf"), fmt.Appendf(nil, eximConfig, e.folder, as), 0o644); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	process := e.command("-bdf", "-oX", strings.Replace(e.address, ":", ".", 1))
	var out strings.Builder
	process.Stdout, process.Stderr = &out, &out
	if err := process.Start(); err != nil {
		t.Fatalf("process.Start: %v", err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
		if t.Failed() {
			t.Logf("Exim: %s", out.String())
		}
	})
	return e
}

func (e *exim) command(args ...string) *exec.Cmd {
	return exec.Command("exim4", append([]string{"-C", filepath.Join(e.folder, "conf")}, args...)...)
}

// mails are those in the queue, as Exim would deliver them.
func (e *exim) mails(t *testing.T) (all []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(e.folder, "spool", "input", "*-H"))
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	for _, path := range found {
		out, err := e.command("-Mvc", strings.TrimSuffix(filepath.Base(path), "-H")).Output()
		if err != nil {
			t.Fatalf("exim4 -Mvc: %v: %s", err, out)
		}
		all = append(all, string(out))
	}
	return all
}

func (e *exim) server(t *testing.T, user string) *mail.Server {
	t.Helper()
	s, err := mail.New(mail.Config{URL: "smtp://" + user + e.address, From: from})
	if err != nil {
		t.Fatalf("mail.New: %v", err)
	}
	return s
}

// A real server takes the mail, refuses an address, and wants the password.
func TestExim(t *testing.T) {
	e := startExim(t)
	s := e.server(t, "jo:secret@")
	wait.Until(t, func() string {
		if err := s.Check(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	sent := mail.Message{
		To: "jö@bücher.example", ToName: "Jö", Subject: "Lesung – heute", Text: "Hi\n.\n" + strings.Repeat("ü", 2000) + "\n", HTML: "<p>Hi", ID: "1",
		Calendar: calendar, Method: "CANCEL", Unsubscribe: "https://news.example.com/leave", OneClick: true, Language: "de",
	}
	if err := s.Send(t.Context(), sent); err != nil {
		t.Fatalf("Send: %v", err)
	}
	mails := e.mails(t)
	if len(mails) != 1 {
		t.Fatalf("%d mails, want 1", len(mails))
	}
	got := read(t, strings.ReplaceAll(strings.ReplaceAll(mails[0], "\r\n", "\n"), "\n", "\r\n"))
	for _, of := range []string{"Date", "Received"} {
		delete(got.Header, of)
	}
	const alternative = "multipart/mixed multipart/alternative"
	want := received{
		map[string]string{
			"Mime-Version": "1.0", "Auto-Submitted": "auto-generated", "From": `"The Daily" <events@example.com>`, "To": "Jö <jö@xn--bcher-kva.example>",
			"Subject": "Lesung – heute", "Message-Id": "<1@example.com>", "Content-Language": "de",
			"List-Unsubscribe": "<https://news.example.com/leave>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		},
		[]part{
			{alternative, "text/plain; charset=UTF-8", "", bodyText(sent.Text)},
			{alternative, "text/html; charset=UTF-8", "", sent.HTML},
			{alternative, "text/calendar; method=CANCEL; charset=UTF-8", "", string(calendar)},
			{"multipart/mixed", `application/ics; name="event.ics"`, `attachment; filename="event.ics"`, string(calendar)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the mail (-want +got):\n%s", diff)
	}

	refusal, _ := errors.AsType[*mail.Refusal](s.Send(t.Context(), mail.Message{To: "nobody@example.org", ID: "2"}))
	if diff := cmp.Diff(&mail.Refusal{Code: 550, Text: "no user of that name: …"}, refusal); diff != "" {
		t.Errorf("the refusal (-want +got):\n%s", diff)
	}
	for user, want := range map[string]string{
		"jo:other@": `signing in at ` + e.address + ` as "jo" failed: the server said 535 Incorrect authentication data`,
		"":          "",
	} {
		if err := e.server(t, user).Check(t.Context()); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("Check as %q: %v, want %q", user, err, want)
		}
	}
}
