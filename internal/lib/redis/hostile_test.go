package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// hostile are what no Redis sends: lengths, types, nesting, lines.
var hostile = map[string]string{
	"an array of 10^9":         "*999999999\r\n",
	"an array of 9e18":         "*9000000000000000000\r\n",
	"a text of 9e18":           "$9000000000000000000\r\n",
	"a map of 9e18":            "%9000000000000000000\r\n",
	"a map of 5e18":            "%5000000000000000000\r\n",
	"a set of 9e18":            "~9000000000000000000\r\n",
	"a push of 9e18":           ">9000000000000000000\r\n",
	"an attribute of 9e18":     "|9000000000000000000\r\n+OK\r\n",
	"an error of 9e18":         "!9000000000000000000\r\n",
	"verbatim of 9e18":         "=9000000000000000000\r\n",
	"an array of -2":           "*-2\r\n",
	"a text of -2":             "$-2\r\n",
	"a text of -9e18":          "$-9000000000000000000\r\n",
	"a map of -1":              "%-1\r\n",
	"a push of -2":             ">-2\r\n",
	"a streamed text":          "$?\r\n;9000000000000000000\r\n",
	"a streamed text of -1":    "$?\r\n;-1\r\n",
	"a streamed array":         "*?\r\n+OK\r\n" + endless,
	"a streamed map":           "%?\r\n+OK\r\n" + endless,
	"deep nesting":             "*1\r\n" + endless,
	"attributes without end":   "|1\r\n+a\r\n+b\r\n" + endless,
	"a line without end":       "+" + strings.Repeat("a", 4096) + endless,
	"a number without end":     ":" + strings.Repeat("1", 4096) + endless,
	"a type that is not known": "@1\r\n",
	"HTTP":                     "HTTP/1.1 400 Bad Request\r\n\r\n",
	"zeros":                    "\x00\x00\x00\x00",
	"OK without end":           "+OK\r\n" + endless,
	"MOVED twice":              "-MOVED 1 127.0.0.1:1\r\n-MOVED 1 127.0.0.1:1\r\n",
	"MOVED without end":        "-MOVED 1 127.0.0.1:1\r\n" + endless,
	"MOVED to nowhere":         "-MOVED\r\n",
	"MOVED with a slot":        "-MOVED 1\r\n",
	"ERR MOVED":                "-ERR MOVED 1\r\n",
	"ASK to nowhere":           "-ASK 1\r\n",
	"LOADING without end":      "-LOADING Redis is loading\r\n" + endless,
	"a message":                ">3\r\n+message\r\n+a\r\n+b\r\n",
	"subscribe":                ">3\r\n+subscribe\r\n+a\r\n:1\r\n",
	"unsubscribe":              ">3\r\n+unsubscribe\r\n+a\r\n:1\r\n" + endless,
	"QUEUED":                   "+QUEUED\r\n-QUEUED\r\n",
	"invalidate":               ">2\r\n+invalidate\r\n*1\r\n+a\r\n",
	"an array in the response": "*2\r\n>3\r\n+subscribe\r\n+a\r\n:1\r\n+b\r\n",
	"a long error":             "-ERR " + strings.Repeat("a", 10_000) + "\r\n",
	"memory":                   "*60000\r\n" + endless,
}

// modes are how an edge is connected: the parameters behind the address of a stand-in that
// is a server, a Sentinel or a node.
var modes = []struct {
	name, parameters string
	commands         []string // that the mode sends
	faults           []map[string]string
}{
	{"one server", "", []string{"connect", "after", "HELLO", "CLIENT", "EVALSHA", "PING"}, []map[string]string{
		{"HELLO": "*1\r\n+a\r\n"},
		{"HELLO": "%1\r\n*0\r\n*0\r\n"},
		{"HELLO": "%1\r\n+proto\r\n+3\r\n"},
		{"HELLO": "$-1\r\n"},
		{"CLIENT": "*0\r\n"},
		{"EVALSHA": ":1\r\n"},
		{"EVALSHA": "*-1\r\n"},
		{"EVALSHA": "-NOSCRIPT\r\n", "EVAL": "*0\r\n"},
	}},
	{"Sentinels", "?master_set=mymaster", []string{"ROLE", "SENTINEL", "SUBSCRIBE", "UNSUBSCRIBE"}, []map[string]string{
		{"ROLE": "*0\r\n"},
		{"ROLE": "*-1\r\n"},
		{"ROLE": "+master\r\n"},
		{"ROLE": "%1\r\n+master\r\n+a\r\n"},
		{"SENTINEL": "*0\r\n"},
		{"SENTINEL": "*1\r\n+a\r\n"},
		{"SENTINEL": "*-1\r\n"},
		{"SENTINEL": "*2\r\n*0\r\n*0\r\n"},
		{"SENTINEL": "*2\r\n*1\r\n+a\r\n%1\r\n+ip\r\n*0\r\n"},
		{"UNSUBSCRIBE": "-LOADING\r\n", "PING": "-LOADING\r\n"},
		{"UNSUBSCRIBE": "-ERR a\r\n", "PING": "+b\r\n"},
		{"UNSUBSCRIBE": "+PONG\r\n"},
		{"SUBSCRIBE": "+QUEUED\r\n"},
		{"SUBSCRIBE": "-QUEUED\r\n"},
		{"SUBSCRIBE": "*3\r\n+subscribe\r\n+a\r\n:1\r\n" + endless},
		{"SUBSCRIBE": strings.Repeat(">3\r\n+subscribe\r\n+a\r\n:1\r\n", 6) + ">3\r\n+message\r\n+switch-master\r\n+mymaster\r\n" + endless},
		{"SUBSCRIBE": strings.Repeat(">3\r\n+subscribe\r\n+a\r\n:1\r\n", 6) + ">3\r\n+message\r\n++sentinel\r\n+a b\r\n"},
		{"SUBSCRIBE": strings.Repeat(">3\r\n+subscribe\r\n+a\r\n:1\r\n", 6) + ">3\r\n+message\r\n++reboot\r\n+master mymaster\r\n"},
	}},
	{"a Cluster", "?addr=127.0.0.1:1", []string{"CLUSTER", "EVALSHA"}, []map[string]string{
		{"CLUSTER": "*0\r\n"},
		{"CLUSTER": "+OK\r\n"},
		{"CLUSTER": "*1\r\n*0\r\n"},
		{"CLUSTER": "*1\r\n+a\r\n"},
		{"CLUSTER": "*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n"},
		{"CLUSTER": "*1\r\n*3\r\n:-5\r\n:99999999\r\n*2\r\n+127.0.0.1\r\n:-1\r\n"},
		{"CLUSTER": "*1\r\n*3\r\n+a\r\n*0\r\n*2\r\n:1\r\n+a\r\n"},
		{"CLUSTER": "*1\r\n*4\r\n:0\r\n:16383\r\n*2\r\n$-1\r\n:1\r\n+a\r\n"},
		{"CLUSTER": "-MOVED 1 127.0.0.1:1\r\n"},
		{"HELLO": "%2\r\n+version\r\n+8.0.0\r\n+proto\r\n:3\r\n", "CLUSTER": "*1\r\n%2\r\n+slots\r\n*3\r\n:0\r\n+a\r\n:1\r\n+nodes\r\n*1\r\n%1\r\n+role\r\n+master\r\n"},
		{"HELLO": "%2\r\n+version\r\n+8.0.0\r\n+proto\r\n:3\r\n", "CLUSTER": "*1\r\n%2\r\n+slots\r\n+a\r\n+nodes\r\n*1\r\n%2\r\n+role\r\n+master\r\n+health\r\n+online\r\n"},
		{"EVALSHA": "-ASK 1 127.0.0.1:1\r\n"},
		{"EVALSHA": "-MOVED 1 a b c\r\n"},
		{"EVALSHA": "-MOVED  \r\n"},
		{"EVALSHA": "-CLUSTERDOWN\r\n"},
		{"EVALSHA": "-TRYAGAIN\r\n"},
	}},
}

// Whatever comes from Redis's address, the process lives, and the same client works once a
// Redis answers there. A panic in any goroutine would end this test's process.
func TestHostileResponsesEndNoProcess(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			tests := make(map[string]map[string]string)
			for _, faults := range mode.faults {
				var name []string
				for command, response := range faults {
					name = append(name, command+" "+response)
				}
				tests[strings.Join(name, " ")] = faults
			}
			for _, command := range mode.commands {
				for name, response := range hostile {
					tests[command+" "+name] = map[string]string{command: response}
				}
			}
			var all []*sufferer
			for name, faults := range tests {
				all = append(all, suffer(t, name, mode.parameters, faults))
			}
			survive(t, all, mode.parameters != "")
		})
	}
}

// sufferer is a client of a stand-in that misbehaves.
type sufferer struct {
	name   string
	faults map[string]string
	server *standIn
	client *Client
	logs   *observer.ObservedLogs
}

func suffer(t *testing.T, name, parameters string, faults map[string]string) *sufferer {
	server := newStandIn(t)
	core, logs := observer.New(zapcore.InfoLevel)
	client, err := New(Config{URL: "redis://" + server.address + parameters, Timeout: timeout, Logger: zap.New(core)})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	t.Cleanup(client.Close)
	return &sufferer{name, faults, server, client, logs}
}

// works reports what is wrong with the last of all that does not work.
func works(all []*sufferer) func() string {
	return func() string {
		for _, s := range all {
			if got, err := s.client.Run(echo, "key", "x"); got != "well" || err != nil {
				return s.name + ": the client does not work"
			}
		}
		return ""
	}
}

func survive(t *testing.T, all []*sufferer, isMany bool) {
	wait.Until(t, works(all))
	for _, s := range all {
		s.server.breaks(s.faults)
		s.server.connections.Store(0)
	}
	begun := time.Now()
	for range 2 {
		var callers sync.WaitGroup
		for _, s := range all {
			callers.Go(func() {
				if _, err := s.client.Run(echo, "key", "x"); err != nil && !errors.Is(err, ErrAway) {
					t.Errorf("%s: Run = %v, want no error or error %v", s.name, err, ErrAway)
				}
				// What Sentinels and nodes say is asked for when a connection ends.
				if live := s.client.live.Load(); live != nil && isMany {
					s.client.lost(live, errors.New("the test ends it"))
				}
			})
		}
		callers.Wait()
		<-time.After(time.Second) // in which the clients try again
	}
	most := 20 + 5*int64(time.Since(begun)/time.Second)
	for _, s := range all {
		if made := s.server.connections.Load(); made > most {
			t.Errorf("%s: %d connections in %s, want %d at most", s.name, made, time.Since(begun), most)
		}
		s.server.breaks(nil)
	}
	wait.Until(t, works(all))
	for _, s := range all {
		most := 10 * (1 + int(time.Since(begun)/time.Minute))
		if n := s.logs.Len(); n > most {
			t.Errorf("%s: %d lines were logged, want %d at most", s.name, n, most)
		}
		for _, entry := range s.logs.All() {
			for _, field := range entry.Context {
				if text := field.String + errorText(field); len(text) > 300 {
					t.Errorf("%s: %d bytes are in a line: %.100q", s.name, len(text), text)
				}
			}
		}
	}
}

func errorText(field zapcore.Field) string {
	if err, ok := field.Interface.(error); ok {
		return err.Error()
	}
	return ""
}

// The same client finds the real Redis where the other one was.
func TestRealAfterHostile(t *testing.T) {
	server := redistest.Start(t)
	for _, name := range []string{"an array of 9e18", "OK without end", "MOVED twice"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := newStandIn(t)
			p := newProxy(t, server.Address)
			client, _ := start(t, p.address)
			waitUp(t, client)
			other.breaks(map[string]string{"connect": hostile[name]})
			other.connections.Store(0)
			p.to.Store(&other.address)
			p.end()
			wait.Until(t, func() string {
				if n := other.connections.Load(); n < 2 { // the second is a retry
					return fmt.Sprintf("the client has connected to the hostile Redis %d times, want 2", n)
				}
				return ""
			})
			p.to.Store(&server.Address)
			waitUp(t, client)
			if got, err := client.Run(echo, "lychgate:test", name); got != name || err != nil {
				t.Errorf("%q, %v, want %q", got, err, name)
			}
		})
	}
}

// A Redis that hangs in the middle of a response delays each caller of that moment by the
// timeout, and nobody after them; one that answers with another type delays nobody.
func TestPatienceWithResponses(t *testing.T) {
	for name, response := range map[string]string{
		"half a text": "$100\r\nabc", "half a length": "$1", "half an array": "*2\r\n+a\r\n", "nothing": "", "half an error": "-ERR a",
		"a number": ":1\r\n", "null": "_\r\n", "an array": "*1\r\n+a\r\n", "a map": "%1\r\n+a\r\n+b\r\n", "an error": "-WRONGTYPE a\r\n",
		"too much": "+a\r\n+b\r\n", "a redirection": "-MOVED 1 192.0.2.1:6379\r\n",
	} {
		for _, mode := range modes {
			t.Run(name+" of "+mode.name, func(t *testing.T) {
				server := newStandIn(t)
				client, err := New(Config{URL: "redis://" + server.address + mode.parameters})
				if err != nil {
					t.Fatalf("error %v, want none", err)
				}
				client.Start()
				t.Cleanup(client.Close)
				waitUp(t, client)
				server.breaks(map[string]string{"EVALSHA": response, "EVAL": response})
				var callers sync.WaitGroup
				var waits [64]time.Duration
				for i := range waits {
					callers.Go(func() {
						begun := time.Now()
						_, _ = client.Run(echo, "key", "x")
						waits[i] = time.Since(begun)
					})
				}
				callers.Wait()
				slices.Sort(waits[:])
				if median := waits[len(waits)/2]; median > 16*defaultTimeout { // if they waited for each other, it were 32 timeouts
					t.Errorf("callers waited for %s, want %s", median, defaultTimeout)
				}
				took := time.Hour
				for range 3 {
					begun := time.Now()
					for range 1000 {
						_, _ = client.Run(echo, "key", "x")
					}
					took = min(took, time.Since(begun))
				}
				if took > 500*defaultTimeout { // if each waited, it were 1000 timeouts
					t.Errorf("a thousand callers after them waited for %s, want no time", took)
				}
			})
		}
	}
}
