package redis

import (
	"bytes"
	"errors"
)

// Bounds of a response. Those of elements and bytes are for CLUSTER SLOTS of a Cluster of
// 1,000 nodes whose slots are scattered; all else is much shorter.
const (
	maxLine     = 16 << 10 // bytes of a line, such as an error
	maxBulk     = 1 << 20  // bytes of a bulk string; those of the largest rate limit are half of it
	maxElements = 1 << 16  // of all arrays and maps of a response together
	maxResponse = 4 << 20  // bytes
	maxDepth    = 8
)

// errBreach begins what is wrong with a connection on which something came that no Redis
// sends. It has no byte of what came.
var errBreach = errors.New("the server violates the Redis protocol")

type breach string

func (b breach) Error() string        { return errBreach.Error() + ": " + string(b) }
func (b breach) Is(target error) bool { return target == errBreach }

const (
	breachUnasked  = breach("a response that nobody asked for")
	breachPush     = breach("a push message that nobody asked for")
	breachType     = breach("a response of a type that the command does not have")
	breachLength   = breach("a length that is not valid or too large")
	breachDepth    = breach("arrays that are nested too deep")
	breachSize     = breach("a response that is too large")
	breachLine     = breach("a line that is not valid or too long")
	breachRedirect = breach("a redirection without an address")
)

// command is what is written of a command so far: *2\r\n$4\r\nPING\r\n…
type command struct {
	isWord bool // within a word, of which left bytes are to come, with the line's end
	left   int
	length int // the number in the line so far
	words  int // that are to come
	count  int // words so far
	isOpen bool

	name, second [16]byte
	nameLen, len int

	afterUnsubscribe bool
}

// keep notes how the first two words begin.
func (w *command) keep(part []byte) {
	switch w.count {
	case 0:
		w.nameLen += copy(w.name[w.nameLen:], part)
	case 1:
		w.len += copy(w.second[w.len:], part)
	}
}

// protocol follows both directions of a connection (RESP2 and RESP3,
// https://redis.io/docs/latest/develop/reference/protocol-spec/), in pieces of any size. It
// knows of each command that we send which responses do no harm to rueidis, which panics at
// many others. The zero value is a new connection.
type protocol struct {
	writing  command
	pending  []asked // for commands written whole, the oldest at first
	first    int
	hasHello bool // HELLO 3 was sent, so that push messages have a type of their own

	wrong error
	reply asked // whose response is being read
	state byte  // one of those below

	typ       byte
	line      [32]byte // how the line, or the bulk string, begins
	lineLen   int
	spaces    int
	lastByte  byte
	left      int // bytes of a bulk string, with its line's end
	bulk      int // its length
	size      int // bytes of the response so far
	elements  int // that the response has announced so far
	stack     [maxDepth]int
	depth     int
	isFirst   bool // the next value is the first of the outermost array
	isReading bool // within a response
}

// States of what is read next.
const (
	atType byte = iota
	inLine
	inBulk
)

// shape is what a response may be.
type shape byte

const (
	scalar    shape = iota // a string, a number, null or an error
	anyMap                 // a map, an array of pairs or an error
	list                   // an array, null or an error
	pong                   // PONG or an error
	onlyPong               // PONG
	confirmed              // a push message for each channel
)

// asked is a command without its response.
type asked struct {
	shape shape
	least int  // elements of a list, or channels to be confirmed
	begin byte // how the confirmation begins: s for subscribe, u for unsubscribe
}

// read counts the bytes of b that may be passed on. An error is about the one behind them.
func (p *protocol) read(b []byte) (int, error) {
	if p.wrong != nil {
		return 0, p.wrong
	}
	for i := 0; i < len(b); {
		var n int
		switch p.state {
		case atType:
			n, p.wrong = 1, p.begin(b[i])
		case inLine:
			n, p.wrong = p.readLine(b[i:])
		default:
			n, p.wrong = p.readBulk(b[i:])
		}
		if p.wrong != nil {
			return i, p.wrong
		}
		i += n
	}
	return len(b), nil
}

// begin takes the type of a value.
func (p *protocol) begin(typ byte) error {
	p.typ, p.lineLen, p.spaces, p.lastByte, p.state = typ, 0, 0, 0, inLine
	if p.isReading {
		if bytes.IndexByte([]byte("+:$_*%"), typ) < 0 {
			return breachType
		}
		return nil
	}
	if p.first == len(p.pending) {
		if typ == '>' {
			return breachPush
		}
		return breachUnasked
	}
	p.reply = p.pending[p.first]
	if p.reply.shape == confirmed {
		if p.pending[p.first].least--; p.pending[p.first].least == 0 {
			p.drop()
		}
	} else {
		p.drop()
	}
	p.isReading, p.isFirst, p.size, p.elements = true, false, 0, 0
	if typ == '>' && p.reply.shape != confirmed {
		return breachPush
	}
	if !p.reply.may(typ, p.hasHello) {
		return breachType
	}
	return nil
}

func (p *protocol) drop() {
	if p.first++; p.first == len(p.pending) {
		p.pending, p.first = p.pending[:0], 0
	}
}

// may reports whether a response may be of a type.
func (a asked) may(typ byte, hasHello bool) bool {
	switch a.shape {
	case anyMap:
		return typ == '%' || typ == '*' || typ == '-'
	case list:
		return typ == '*' || typ == '_' || typ == '-'
	case pong:
		return typ == '+' || typ == '-' || typ == '*' && !hasHello
	case onlyPong:
		return typ == '+' || typ == '*' && !hasHello
	case confirmed:
		return typ == '>' && hasHello || typ == '*' && !hasHello
	}
	return typ == '+' || typ == '-' || typ == ':' || typ == '$' || typ == '_'
}

// readLine takes the rest of a line, or a part of it.
func (p *protocol) readLine(b []byte) (n int, err error) {
	end := bytes.IndexByte(b, '\n')
	part := b
	if end >= 0 {
		part = b[:end]
	}
	most := maxLine
	if p.typ != '+' && p.typ != '-' {
		most = len(p.line) // a number
	}
	if p.lineLen+len(part) > most {
		return 0, breachLine
	}
	if p.lineLen < len(p.line) {
		copy(p.line[p.lineLen:], part)
	}
	if p.typ == '-' {
		p.spaces += bytes.Count(part, []byte{' '})
	}
	if len(part) > 0 {
		if p.lastByte == '\r' || bytes.IndexByte(part[:len(part)-1], '\r') >= 0 {
			return 0, breachLine
		}
		p.lastByte = part[len(part)-1]
	}
	p.lineLen += len(part)
	if end < 0 {
		return len(b), nil
	}
	if p.lastByte != '\r' {
		return 0, breachLine
	}
	p.lineLen--
	return end + 1, p.endLine()
}

// endLine takes the whole line of a value.
func (p *protocol) endLine() error {
	if p.size += p.lineLen; p.size > maxResponse {
		return breachSize
	}
	text := p.line[:min(p.lineLen, len(p.line))]
	switch p.typ {
	case '+':
		if isPong := p.reply.shape == pong || p.reply.shape == onlyPong; isPong && p.depth == 0 && string(text) != "PONG" {
			return breachType
		}
		return p.endText(text)
	case '-':
		if p.redirectsNowhere(text) {
			return breachRedirect
		}
		return p.endValue()
	case ':':
		if _, ok := number(bytes.TrimPrefix(text, []byte("-")), 1<<63-1); !ok {
			return breachLine
		}
		return p.endOther()
	case '_':
		if len(text) > 0 {
			return breachLine
		}
		return p.endOther()
	case '$':
		return p.beginBulk(text)
	}
	return p.beginArray(text)
}

// redirectsNowhere reports whether an error is a redirection without the address, which is
// its third word, or its second.
func (p *protocol) redirectsNowhere(text []byte) bool {
	spaces := p.spaces
	if rest, ok := bytes.CutPrefix(text, []byte("ERR ")); ok {
		text, spaces = rest, spaces-1
	}
	switch {
	case bytes.HasPrefix(text, []byte("MOVED")), bytes.HasPrefix(text, []byte("ASK")):
		return spaces < 2
	case bytes.HasPrefix(text, []byte("REDIRECT")):
		return spaces < 1
	}
	return false
}

func (p *protocol) beginBulk(text []byte) error {
	if string(text) == "-1" {
		return p.endOther()
	}
	n, ok := number(text, maxBulk)
	if !ok {
		return breachLength
	}
	if p.size += n; p.size > maxResponse {
		return breachSize
	}
	p.bulk, p.left, p.lineLen, p.state = n, n+2, 0, inBulk
	return nil
}

// readBulk takes the rest of a bulk string, or a part of it.
func (p *protocol) readBulk(b []byte) (n int, err error) {
	n = min(len(b), p.left)
	part := b[:n]
	if p.lineLen < len(p.line) {
		p.lineLen += copy(p.line[p.lineLen:], part[:min(n, max(0, p.left-2))])
	}
	for i := max(0, p.left-2); i < min(n, p.left); i++ { // the line's end
		if part[i] != "\r\n"[i-p.left+2] {
			return 0, breachLine
		}
	}
	if p.left -= n; p.left > 0 {
		return n, nil
	}
	text := p.line[:p.lineLen]
	if p.bulk > len(p.line) {
		text = nil // longer than any word that is looked for
	}
	return n, p.endText(text)
}

func (p *protocol) beginArray(text []byte) error {
	isOutermost, isMap := p.depth == 0, p.typ == '%'
	if string(text) == "-1" && p.typ == '*' {
		if isOutermost && p.reply.shape != list {
			return breachType
		}
		return p.endOther()
	}
	n, ok := number(text, maxElements)
	if isMap {
		n *= 2
	}
	if !ok || p.elements+n > maxElements {
		return breachLength
	}
	p.elements += n
	if isOutermost {
		switch s := p.reply.shape; {
		case s == list && n < p.reply.least, s == anyMap && n%2 != 0,
			(s == pong || s == onlyPong) && n != 2, s == confirmed && n != 3:
			return breachLength
		}
	} else if p.isFirst {
		p.isFirst = false
		if p.reply.isNamed() {
			return breachType
		}
	}
	if n == 0 {
		return p.endValue()
	}
	if p.depth == maxDepth {
		return breachDepth
	}
	p.stack[p.depth] = n
	p.depth++
	p.isFirst, p.state = isOutermost, atType
	return nil
}

// isNamed reports whether an array begins with a word that says what it is.
func (a asked) isNamed() bool { return a.shape == pong || a.shape == onlyPong || a.shape == confirmed }

// endText ends a value that is text, of which as much is given as is ever looked at.
func (p *protocol) endText(text []byte) error {
	if p.isFirst && p.reply.isNamed() {
		want := "pong"
		switch p.reply.begin {
		case 's':
			want = "subscribe"
		case 'u':
			want = "unsubscribe"
		}
		if string(text) != want {
			return breachPush
		}
	}
	return p.endValue()
}

// endOther ends a value that is no text.
func (p *protocol) endOther() error {
	if p.isFirst && p.reply.isNamed() {
		return breachPush
	}
	return p.endValue()
}

// endValue ends a value, and the arrays of which it is the last.
func (p *protocol) endValue() error {
	p.state, p.isFirst = atType, false
	for p.depth > 0 {
		if p.stack[p.depth-1]--; p.stack[p.depth-1] > 0 {
			return nil
		}
		p.depth--
	}
	p.isReading = false
	return nil
}

// number reads digits, without a sign.
func number(text []byte, most int) (n int, ok bool) {
	if len(text) == 0 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' || n > (most-int(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
