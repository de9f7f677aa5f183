package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// ErrMalformed means that a server sent a response that is no HTTP/1.1. It quotes nothing of it.
var ErrMalformed = errors.New("the response is not valid HTTP/1.1")

// conn is a connection for HTTP/1.1 that hands out one response for each request, and no byte
// more: what else a server sends ends the connection. net/http reads the responses once more.
// Both readings use [http.ReadResponse], so they agree about where a response ends.
type conn struct {
	net.Conn

	mu        sync.Mutex
	method    string // of the request that has the connection
	isNew     bool   // nothing of that request was written yet
	isAwaited bool   // it has no response yet, or not all of it

	// Used by Read alone, which has one caller at a time.
	maxHead int
	source  *recorder
	parser  *bufio.Reader
	body    io.ReadCloser // of the response that is being read, or nil
	buffer  []byte
	ready   bytes.Buffer // to be handed out
	failure error        // that comes then
}

// bufferSize is that of net/http's own buffers. A trailer must fit into it.
const bufferSize = 4 << 10

func newConn(raw net.Conn, maxHead int) *conn {
	source := &recorder{from: raw}
	return &conn{Conn: raw, maxHead: maxHead, source: source, parser: bufio.NewReaderSize(source, bufferSize)}
}

// expect says that a request got the connection.
func (c *conn) expect(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.method, c.isNew = method, true
}

// Write sends a part of a request. net/http expects a response only from here on. The rest of a
// request whose response has ended already does not make it expect another.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.isAwaited = c.isAwaited || c.isNew
	c.isNew = false
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// awaited is the method of the request whose response is awaited.
func (c *conn) awaited() (method string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.method, c.isAwaited
}

// Read hands out responses, one for each request.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for c.ready.Len() == 0 {
		if c.failure != nil {
			return 0, c.failure
		}
		if c.body != nil {
			c.readBody()
		} else {
			c.readHead()
		}
	}
	return c.ready.Read(p)
}

// readHead reads a response up to its body. Nothing is handed out of a head that is malformed.
func (c *conn) readHead() {
	c.source.left = c.maxHead
	if _, err := c.parser.Peek(1); err != nil {
		c.failure = err
		return
	}
	method, ok := c.awaited()
	if !ok { // to net/http the server has closed an idle connection
		c.failure = io.EOF
		c.Close()
		return
	}
	response, err := http.ReadResponse(c.parser, &http.Request{Method: method}) //nolint:bodyclose // only its head is of use
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {     // which nobody asks for
		c.fail()
		return
	}
	c.take()
	switch {
	case response.StatusCode/100 == 1: // another head follows
	case response.Body == http.NoBody:
		c.end()
	default:
		c.body = response.Body
		c.source.left = -1
	}
}

// readBody reads a part of a body. Its end is known before the last byte is handed out, so no
// other request has the connection then.
func (c *conn) readBody() {
	if c.buffer == nil {
		c.buffer = make([]byte, 2*bufferSize)
	}
	_, err := c.body.Read(c.buffer)
	if err == nil {
		c.take()
		return
	}
	if errors.Is(err, io.EOF) {
		c.take()
		c.body = nil
		c.end()
		return
	}
	if c.source.err != nil { // net/http tells what is missing
		c.take()
	}
	c.fail()
}

// take has what the parser has read handed out.
func (c *conn) take() {
	n := len(c.source.kept) - c.parser.Buffered()
	c.ready.Write(c.source.kept[:n])
	c.source.kept = append(c.source.kept[:0], c.source.kept[n:]...)
}

// end is the end of a response. Bytes behind it are no response to the next request, which may
// be another member's.
func (c *conn) end() {
	c.mu.Lock()
	c.isAwaited = false
	c.mu.Unlock()
	if c.failure = c.source.err; c.failure == nil && c.parser.Buffered() > 0 {
		c.failure = io.EOF
		c.Close()
	}
}

// fail ends the connection, for an error of the connection or else of the parser, which quotes
// the response.
func (c *conn) fail() {
	c.failure = ErrMalformed
	if c.source.err != nil {
		c.failure = c.source.err
	}
	c.Close()
}

// recorder keeps what is read from a connection.
type recorder struct {
	from io.Reader
	kept []byte
	left int   // of what may be read, -1 for no bound
	err  error // of the connection
}

func (r *recorder) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, ErrMalformed
	}
	if r.left > 0 {
		p = p[:min(len(p), r.left)]
	}
	n, err := r.from.Read(p)
	r.kept = append(r.kept, p[:n]...)
	if r.left > 0 {
		r.left -= n
	}
	r.err = err
	return n, err
}
