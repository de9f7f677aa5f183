package membersapi_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// hammer makes members from four callers, who go on through crashes, while
// crash is called now and then, and returns those that were acknowledged.
func hammer(t *testing.T, p *edgetest.Process, writes int, unique string, crash func(), crashes int) []string {
	var mu sync.Mutex
	var acknowledged []string
	var wg sync.WaitGroup
	done := make(chan struct{})
	for caller := range 4 {
		wg.Go(func() {
			client := &http.Client{Transport: exchange.Recorder{Transport: &http.Transport{}}, Timeout: 20 * time.Second}
			defer client.CloseIdleConnections()
			for n := range writes / 4 {
				email := fmt.Sprintf("m%d-%d-%s@example.com", caller, n, unique)
				for {
					text, err := p.Call(client, "POST", "", `{"email":"`+email+`"}`)
					if err == nil && (strings.Contains(text, `"success":true`) || strings.Contains(text, "already taken")) {
						mu.Lock()
						acknowledged = append(acknowledged, email)
						mu.Unlock()
						break
					}
					if err == nil {
						t.Errorf("%s: got %s, want an error", email, text)
						break
					}
					<-time.After(20 * time.Millisecond) // the edge is down: a client's pause before it retries
				}
			}
		})
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	for range crashes {
		select {
		case <-done:
		case <-time.After(time.Duration(100+rand.IntN(500)) * time.Millisecond):
			crash()
		}
	}
	<-done
	return acknowledged
}

// A thousand writes, and the edge killed among them: whatever was acknowledged
// is there.
func TestKilledAmongWrites(t *testing.T) {
	t.Parallel()
	p := edgetest.StartProcess(t, edgetest.MembersConfig(edgetest.SQLiteStore(t), "none"))
	acknowledged := hammer(t, p, 1000, "none", p.Crash, 5)
	p.Crash()
	client := &http.Client{Transport: exchange.Recorder{Transport: &http.Transport{}}}
	defer client.CloseIdleConnections()
	wait.Until(t, func() string {
		if _, err := p.Call(client, "GET", "/nobody@example.com", ""); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, email := range acknowledged {
		if text, err := p.Call(client, "GET", "/"+email, ""); err != nil || !strings.Contains(text, email) {
			t.Errorf("%s is gone: %s, %v", email, text, err)
		}
	}
	if len(acknowledged) != 1000 {
		t.Errorf("%d writes were acknowledged in the end, want 1000", len(acknowledged))
	}
}

// The edge killed among writes that go through to a real Ghost: whatever was
// acknowledged is on both sides, once.
func TestKilledAmongWritesToGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	p := edgetest.StartProcess(t, edgetest.MembersConfig(edgetest.SQLiteStore(t), edgetest.GhostPlatform(url, key, "off")))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	acknowledged := hammer(t, p, 60, unique, p.Crash, 4)

	ghost, err := ghost.New(ghost.Config{URL: url, AdminKey: key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	defer ghost.Close()
	client := &http.Client{Transport: exchange.Recorder{Transport: &http.Transport{}}}
	defer client.CloseIdleConnections()
	for _, email := range acknowledged {
		untilInGhost(t, ghost, email)
		if text, err := p.Call(client, "GET", "/"+email, ""); err != nil || !strings.Contains(text, email) {
			t.Errorf("%s is gone from the edge: %s, %v", email, text, err)
		}
	}
	if len(acknowledged) != 60 {
		t.Errorf("%d writes were acknowledged in the end, want 60", len(acknowledged))
	}
}

// Ghost killed among writes: nobody is told of it, and whatever was
// acknowledged is in Ghost in the end.
func TestGhostKilledAmongWrites(t *testing.T) {
	g := ghosttest.New(t)
	g.Start()
	p := edgetest.StartProcess(t, edgetest.MembersConfig(edgetest.SQLiteStore(t), edgetest.GhostPlatform(g.URL, g.Key, "off")))
	acknowledged := hammer(t, p, 100, "ghost", func() {
		g.Kill()
		g.Start()
	}, 1)
	if len(acknowledged) != 100 {
		t.Errorf("%d writes were acknowledged, want 100", len(acknowledged))
	}
	client, err := ghost.New(ghost.Config{URL: g.URL, AdminKey: g.Key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	defer client.Close()
	for _, email := range acknowledged {
		untilInGhost(t, client, email)
	}
}

// untilInGhost waits until a member that was acknowledged is in Ghost. What was
// under way at a crash is behind until its lease has run out.
func untilInGhost(t *testing.T, client *ghost.Client, email string) {
	t.Helper()
	wait.Until(t, func() string {
		if _, err := client.FindByEmail(t.Context(), email); err != nil {
			return fmt.Sprintf("%s was acknowledged and is not in Ghost: %v", email, err)
		}
		return ""
	})
}
