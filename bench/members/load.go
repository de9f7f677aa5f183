package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// get has wrk ask for one address over and over, and returns the rate.
func (b *bench) get(ctx context.Context, address string, header ...string) (float64, error) {
	result, err := b.wrk.Get(ctx, benchtest.Load{Connections: *connections, Duration: *duration}, address, header...)
	return result.PerSecond, err
}

var writeRuns int

// write has wrk create or update members, or do both in turn, with the first so
// many keys. It returns how many requests were answered, in all and per second.
func (b *bench) write(ctx context.Context, kind string, callers, keys int, d time.Duration) (int, float64, error) {
	return b.writeTo(ctx, fmt.Sprintf("http://127.0.0.1:%d", b.edge.apiPort), kind, callers, keys, d)
}

func (b *bench) writeTo(ctx context.Context, address, kind string, callers, keys int, d time.Duration) (int, float64, error) {
	writeRuns++
	result, err := b.wrk.Writes(ctx, benchtest.Load{Connections: callers, Duration: d}, address,
		benchtest.Writes{Kind: kind, Run: writeRuns, Members: smallStore, Keys: keys})
	return result.Requests, result.PerSecond, err
}

// caller is one connection over which requests are sent one after the other.
type caller struct {
	conn   net.Conn
	reader *bufio.Reader
	out    bytes.Buffer
	body   []byte
}

func dial(port int) (*caller, error) {
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	return &caller{conn: conn, reader: bufio.NewReader(conn)}, nil
}

func (c *caller) close() { c.conn.Close() }

// call sends a request to the members API and returns how long the response
// took. Anything but success is an error.
func (c *caller) call(method, path, body string) (time.Duration, error) {
	c.out.Reset()
	fmt.Fprintf(&c.out, "%s /integration/members%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n", method, path, benchtest.IntegrationKey(0))
	if body != "" {
		fmt.Fprintf(&c.out, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	c.out.WriteString("\r\n")
	c.out.WriteString(body)
	start := time.Now()
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return 0, err
	}
	if err := c.readAnswer(); err != nil {
		return 0, err
	}
	took := time.Since(start)
	if !bytes.Contains(c.body, []byte(`"success":true`)) {
		return 0, fmt.Errorf("%s %s: %s", method, path, c.body)
	}
	return took, nil
}

func (c *caller) readAnswer() error {
	length := -1
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := strings.Cut(string(line), ":")
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		case strings.EqualFold(name, "Lychgate-Sync"):
			return errors.New("the write was queued")
		}
	}
	if length < 0 {
		return errors.New("a response without its length")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err := io.ReadFull(c.reader, c.body)
	return err
}
