package button

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// startDNS starts the server that the edge asks about these domains.
func startDNS() (stop func(), address string, err error) {
	zone := map[string]string{
		"workspace.example.":    "workspace.example. 300 IN MX 1 aspmx.l.google.com.",
		"company.example.":      "company.example. 300 IN MX 0 company-example.mail.protection.outlook.com.",
		"live.example.":         "live.example. 300 IN MX 1 aspmx.l.google.com.",
		"live.company.example.": "live.company.example. 300 IN MX 0 company-example.mail.protection.outlook.com.",
		"hotmail.fr.":           "hotmail.fr. 300 IN MX 2 hotmail-com.olc.protection.outlook.com.",
		"own.example.":          "own.example. 300 IN MX 10 mail.own.example.",
		// What a browser makes of bücher.example.
		"xn--bcher-kva.example.": "xn--bcher-kva.example. 300 IN MX 10 mail.protonmail.ch.",
	}
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		reply.RecursionAvailable = true
		if record, ok := zone[strings.ToLower(query.Question[0].Name)]; ok {
			rr, err := dns.NewRR(record)
			if err != nil {
				panic(err)
			}
			reply.Answer = []dns.RR{rr}
		} else {
			reply.Rcode = dns.RcodeNameError
		}
		w.WriteMsg(reply)
	})}
	go server.ActivateAndServe()
	return func() { server.Shutdown() }, conn.LocalAddr().String(), nil
}

const caddyfile = `{
	admin off
	persist_config off
	storage file_system {{folder}}/data
	lychgate {
		store sqlite {{folder}}/lychgate.db
		resolvers {{dns}}
		site daily {
			hosts localhost
			platform none
		}
	}
}

http://localhost:{{port}} {
	bind fd/3
	inbox_provider {
		limit 1000 1m
	}
	handle / {
		root {{web}}
		rewrite /demo.html
		file_server
	}
	handle {
		root {{pages}}
		file_server
	}
}
`

// caddyBinary is the built Caddy.
var caddyBinary string

// startEdge builds Caddy with Lychgate and starts it.
func startEdge(folder, resolver string) (stop func(), err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	caddyBinary = filepath.Join(folder, "caddy")
	build := exec.Command("go", "build", "-o", caddyBinary, "./cmd/caddy")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building Caddy: %w: %s", err, out)
	}
	dnsAddress, pages = resolver, filepath.Join(folder, "pages")
	if err := os.Mkdir(pages, 0o700); err != nil {
		return nil, err
	}
	listener, _, err := listen()
	if err != nil {
		return nil, err
	}
	edge, stop, err = runCaddy(folder, listener, strings.NewReplacer("{{web}}", filepath.Join(root, "web"), "{{pages}}", pages).Replace(caddyfile))
	return stop, err
}

// dnsAddress is where the edge asks.
var dnsAddress string

// listen opens a socket at a free port, for runCaddy.
func listen() (listener *net.TCPListener, port string, err error) {
	listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, "", err
	}
	_, port, err = net.SplitHostPort(listener.Addr().String())
	return listener, port, err
}

// runCaddy runs Caddy until it is stopped, and returns its address. Caddy is
// handed the socket, which is fd/3 in the Caddyfile.
func runCaddy(folder string, listener *net.TCPListener, config string) (address string, stop func(), err error) {
	defer listener.Close()
	socket, err := listener.File()
	if err != nil {
		return "", nil, err
	}
	defer socket.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", nil, err
	}
	config = strings.NewReplacer("{{folder}}", folder, "{{dns}}", dnsAddress, "{{port}}", port).Replace(config)
	path := filepath.Join(folder, "Caddyfile")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return "", nil, err
	}
	var log bytes.Buffer
	cmd := exec.Command(caddyBinary, "run", "--config", path)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.ExtraFiles = []*os.File{socket}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		cmd.Wait()
	}()
	stop = func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
	}
	// The socket is open, so Caddy answers once it runs.
	address = "http://localhost:" + port
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/ghost/inbox-provider?domain=gmail.com", nil)
	if err != nil {
		stop()
		return "", nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		stop()
		lines := strings.SplitAfter(log.String(), "\n")
		return "", nil, fmt.Errorf("caddy does not answer: %w, %v; its log ends with\n%s", err, cmd.ProcessState, strings.Join(lines[max(0, len(lines)-10):], ""))
	}
	response.Body.Close()
	return address, stop, nil
}
