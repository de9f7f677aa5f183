package staffdesk_test

import (
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// startMail starts a server that takes mail (RFC 5321), and returns its port and the
// subjects of what arrives.
func startMail(t testing.TB) (port string, subjects <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	t.Cleanup(func() { listener.Close() })
	arrived := make(chan string, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			takeMail(textproto.NewConn(conn), arrived)
		}
	}()
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port, arrived
}

func takeMail(conn *textproto.Conn, arrived chan<- string) {
	defer conn.Close()
	err := conn.PrintfLine("220 mail")
	for err == nil {
		var line string
		if line, err = conn.ReadLine(); err != nil {
			return
		}
		switch strings.ToUpper(line[:min(4, len(line))]) {
		case "QUIT":
			_ = conn.PrintfLine("221 bye")
			return
		case "DATA":
			if err = conn.PrintfLine("354 go on"); err != nil {
				return
			}
			header, _ := conn.ReadMIMEHeader()
			_, _ = conn.ReadDotLines() // the rest
			arrived <- header.Get("Subject")
		}
		err = conn.PrintfLine("250 OK")
	}
}

// The steps that the docs print work with a Ghost that has device verification on.
func TestDocumentedSignIn(t *testing.T) {
	text, err := os.ReadFile("../../docs/theme_manifest.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	steps := regexp.MustCompile(`(?s)\$ (curl [^\n]*\\\n[^\n]*/admin/session/[^\n]*)\n`).FindAllStringSubmatch(string(text), -1)
	if len(steps) != 2 {
		t.Fatalf("got %q, want 2 steps", steps)
	}
	g := ghosttest.New(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), "http://127.0.0.1:"+g.Port, "1:"+strings.Repeat("0", 64), ""))
	smtp, subjects := startMail(t)
	t.Setenv("LYCHGATE_GHOST_URL", e.Base)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	g.Start()
	g.Kill()
	t.Setenv("security__staffDeviceVerification", "true") // over Ghost's own file
	g.Start()

	folder := t.TempDir()
	run := func(command, code string) string {
		t.Helper()
		command = strings.NewReplacer("https://news.example.com", e.Base, "jane@example.com", edgetest.GhostOwner, "…", edgetest.GhostPassword, "123456", code).Replace(command)
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: Output: %v", command, err)
		}
		return string(out)
	}
	list := "curl -b cookies -H 'Origin: " + e.Base + "' " + e.Base + "/ghost/lychgate/themes"
	if got := run(steps[0][1], ""); !strings.Contains(got, "2FA_NEW_DEVICE_DETECTED") {
		t.Errorf("signing in: %s", got)
	}
	if diff := cmp.Diff(`{"message":"Sign in to Ghost's admin on this site first."}`+"\n", run(list, "")); diff != "" {
		t.Errorf("without the code: %s", diff)
	}
	code := ""
	for late := time.After(time.Minute); code == ""; {
		select {
		case subject := <-subjects: // Ghost greets its owner too
			code = regexp.MustCompile(`^[0-9]{6}\b`).FindString(subject)
		case <-late:
			t.Fatal("got no mail with a code, want one")
		}
	}
	if diff := cmp.Diff("OK", run(steps[1][1], code)); diff != "" {
		t.Errorf("verifying: %s", diff)
	}
	if diff := cmp.Diff(`{"themes":[]}`+"\n", run(list, "")); diff != "" {
		t.Errorf("with the code: %s", diff)
	}
}
