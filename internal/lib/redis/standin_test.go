package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// standIn answers as a Redis, a Sentinel and a node of a Cluster do, but for the commands of
// which faults says what is written in place of the response. "connect" is written at once,
// "after" behind each response.
type standIn struct {
	address     string
	faults      atomic.Pointer[map[string]string]
	connections atomic.Int64 // so far
}

// endless after a fault is written again and again until the connection ends.
const endless = "(and so on)"

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	s := &standIn{address: listener.Addr().String()}
	s.faults.Store(&map[string]string{})
	var running sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			running.Go(func() {
				defer conn.Close()
				_ = s.serve(conn)
			})
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

func (s *standIn) serve(conn net.Conn) error {
	in := bufio.NewReader(conn)
	if err := send(conn, (*s.faults.Load())["connect"]); err != nil {
		return err
	}
	for {
		words, err := readCommand(in)
		if err != nil {
			return err
		}
		faults := *s.faults.Load()
		text, isFault := faults[words[0]]
		if !isFault {
			text = s.reply(words)
		}
		if err := send(conn, text+faults["after"]); err != nil {
			return err
		}
	}
}

func send(conn net.Conn, text string) error {
	text, isEndless := strings.CutSuffix(text, endless)
	for {
		if _, err := io.WriteString(conn, text); err != nil || !isEndless {
			return err
		}
	}
}

func readCommand(in *bufio.Reader) (words []string, err error) {
	number := func(typ string) (n int) {
		line, lineErr := in.ReadString('\n')
		if lineErr != nil {
			err = lineErr
			return 0
		}
		if n, lineErr = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, typ))); lineErr != nil {
			err = lineErr
		}
		return n
	}
	for range number("*") {
		word := make([]byte, number("$")+2)
		if _, readErr := io.ReadFull(in, word); readErr != nil {
			return nil, readErr
		}
		words = append(words, strings.ToUpper(string(word[:len(word)-2])))
	}
	if err == nil && len(words) == 0 {
		err = errors.New("no command")
	}
	return words, err
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func (s *standIn) reply(words []string) string {
	host, port, _ := net.SplitHostPort(s.address)
	switch words[0] {
	case "HELLO":
		return "%3\r\n+server\r\n+redis\r\n+version\r\n+7.0.0\r\n+proto\r\n:3\r\n"
	case "EVAL", "EVALSHA":
		return bulk("well")
	case "PING":
		return "+PONG\r\n"
	case "ROLE":
		return "*3\r\n" + bulk("master") + ":0\r\n*0\r\n"
	case "SENTINEL":
		if words[1] == "SENTINELS" {
			return "*0\r\n"
		}
		return "*2\r\n" + bulk(host) + bulk(port)
	case "SUBSCRIBE", "UNSUBSCRIBE":
		var all strings.Builder
		for i, channel := range words[1:] {
			all.WriteString(">3\r\n" + bulk(strings.ToLower(words[0])) + bulk(channel) + fmt.Sprintf(":%d\r\n", i))
		}
		return all.String()
	case "CLUSTER":
		return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk(host) + ":" + port + "\r\n"
	}
	return "+OK\r\n"
}

// breaks has the stand-in misbehave, and none of it well again.
func (s *standIn) breaks(faults map[string]string) {
	faults = maps.Clone(faults)
	s.faults.Store(&faults)
}
