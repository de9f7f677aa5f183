package redis

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// saboteur stands between clients and a server, and says something else in its place.
type saboteur struct {
	address  string
	accepted atomic.Int64
	act      atomic.Pointer[sabotage] // nil for none
}

// sabotage is what comes in place of what the server says. Nothing follows, and the
// connection stays open.
type sabotage struct {
	text  string
	after int // how many of the server's messages get through first
}

func newSaboteur(t *testing.T, server string) *saboteur {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	s := &saboteur{address: listener.Addr().String()}
	var running sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, client, upstream)
			mu.Unlock()
			running.Go(func() {
				_, _ = io.Copy(upstream, client)
				upstream.Close()
			})
			running.Go(func() { s.pass(client, upstream) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return s
}

// pass passes on what the server says, until it is sabotaged.
func (s *saboteur) pass(client, upstream net.Conn) {
	defer client.Close()
	message := make([]byte, 64<<10)
	for passed := 0; ; passed++ {
		n, err := upstream.Read(message)
		if err != nil {
			return
		}
		act := s.act.Load()
		if act == nil || passed < act.after {
			if _, err := client.Write(message[:n]); err != nil {
				return
			}
			continue
		}
		if _, err := io.WriteString(client, act.text); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, upstream)
		return
	}
}

// A Sentinel that hangs, at once or in the middle of a response, is left and asked anew: once
// it answers, so does Redis.
func TestSentinelThatHangs(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t, redistest.Start(t))
	for name, text := range map[string]string{"at once": "", "in a text": "$5\r\nab", "in an array": "*2\r\n+a\r\n", "in a length": "$12"} {
		for _, after := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s, after %d answers", name, after), func(t *testing.T) {
				t.Parallel()
				s := newSaboteur(t, sentinel.Address)
				s.act.Store(&sabotage{text, after})
				client, _ := start(t, s.address+"?master_set=mymaster")
				wait.Until(t, func() string {
					if n := s.accepted.Load(); n < 2 && !client.Up() { // a late one leaves the connection to the server as it is
						return fmt.Sprintf("it has connected %d times", n)
					}
					return ""
				})
				s.act.Store(nil)
				waitUp(t, client)
			})
		}
	}
}
