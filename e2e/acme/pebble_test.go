package acme

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// pebble is a Pebble that runs in a process of its own.
type pebble struct {
	Directory string         // its URL
	Authority string         // the file with the certificate of the directory's server
	Roots     *x509.CertPool // whose certificates it issues

	logFile string
}

// startPebble runs Pebble until the test ends. It finds each of the hosts at
// 127.0.0.1, and its challenges go to two ports there.
func startPebble(t *testing.T, httpPort, tlsPort string, hosts ...string) *pebble {
	t.Helper()
	folder := t.TempDir()
	listen, management := "127.0.0.1:"+freeport.New(t), "127.0.0.1:"+freeport.New(t)
	p := &pebble{
		Directory: "https://" + listen + "/dir",
		Authority: filepath.Join(folder, "certificate.pem"),
		logFile:   filepath.Join(folder, "pebble.log"),
	}
	key := filepath.Join(folder, "key.pem")
	writeCertificate(t, p.Authority, key)
	config := filepath.Join(folder, "pebble.json")
	writeJSON(t, config, map[string]any{"pebble": map[string]any{
		"listenAddress":           listen,
		"managementListenAddress": management,
		"certificate":             p.Authority,
		"privateKey":              key,
		"httpPort":                number(t, httpPort),
		"tlsPort":                 number(t, tlsPort),
		"retryAfter":              map[string]int{"authz": 1, "order": 1},
	}})
	p.run(t, buildPebble(t, folder), "-strict", "-config", config, "-dnsserver", startDNS(t, hosts))
	p.Roots = p.fetchRoots(t, "https://"+management+"/roots/0")
	return p
}

// buildPebble builds the Pebble that this module's go.mod names.
func buildPebble(t *testing.T, folder string) (binary string) {
	t.Helper()
	binary = filepath.Join(folder, "pebble")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/letsencrypt/pebble/v2/cmd/pebble").CombinedOutput()
	if err != nil {
		t.Fatalf("building Pebble: %v\n%s", err, output)
	}
	return binary
}

func (p *pebble) run(t *testing.T, binary string, args ...string) {
	t.Helper()
	log, err := os.Create(p.logFile)
	if err != nil {
		t.Fatalf("os.Create: %v", err)
	}
	defer log.Close()
	caddytest.ShowLog(t, p.logFile)
	process := exec.Command(binary, args...)
	// It neither sleeps before challenges nor refuses good nonces, which it does at random.
	process.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_VA_ALWAYS_VALID=0", "PEBBLE_WFE_NONCEREJECT=0")
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatalf("process.Start: %v", err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended
		_ = process.Wait()
	})
}

// fetchRoots waits until Pebble answers, and returns its root certificate.
func (p *pebble) fetchRoots(t *testing.T, address string) *x509.CertPool {
	t.Helper()
	authority, err := os.ReadFile(p.Authority)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	servers := x509.NewCertPool()
	servers.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: servers}}}
	defer client.CloseIdleConnections()
	roots := x509.NewCertPool()
	wait.Until(t, func() string {
		if _, err := get(client, p.Directory); err != nil {
			return err.Error()
		}
		root, err := get(client, address)
		if err != nil {
			return err.Error()
		}
		if !roots.AppendCertsFromPEM(root) {
			return fmt.Sprintf("%s is no certificate: %s", address, root)
		}
		return ""
	})
	return roots
}

// logged counts a text in Pebble's log.
func (p *pebble) logged(t *testing.T, text string) int {
	t.Helper()
	log, err := os.ReadFile(p.logFile)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return strings.Count(string(log), text)
}

// requests counts requests to Pebble of any kind.
func (p *pebble) requests(t *testing.T) int {
	t.Helper()
	return p.logged(t, " -> calling handler()")
}

// orders counts the certificates that Pebble was asked for.
func (p *pebble) orders(t *testing.T) int {
	t.Helper()
	return p.logged(t, "POST /order-plz -> calling handler()")
}

func startDNS(t *testing.T, hosts []string) (address string) {
	t.Helper()
	zone := make(map[string][]string)
	for _, host := range hosts {
		zone[host] = []string{host + ". 300 IN A 127.0.0.1"}
	}
	server, err := dnstest.Start(dnstest.Zone(zone))
	if err != nil {
		t.Fatalf("dnstest.Start: %v", err)
	}
	t.Cleanup(server.Close)
	return server.Addr.String()
}

// writeCertificate writes a certificate of 127.0.0.1 that signs itself, and its key.
func writeCertificate(t *testing.T, certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("ecdsa.GenerateKey: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("x509.CreateCertificate: %v", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("x509.MarshalPKCS8PrivateKey: %v", err)
	}
	writePEM(t, certificateFile, "CERTIFICATE", certificate)
	writePEM(t, keyFile, "PRIVATE KEY", private)
}

func writePEM(t *testing.T, file, kind string, bytes []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
}

func writeJSON(t *testing.T, file string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
}

func number(t *testing.T, port string) int {
	t.Helper()
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatalf("strconv.Atoi: %v", err)
	}
	return n
}

func get(client *http.Client, address string) ([]byte, error) {
	response, err := client.Get(address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, response.Status)
	}
	return body, err
}
