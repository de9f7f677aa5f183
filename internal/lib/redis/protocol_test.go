package redis

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
)

// asks are commands as rueidis writes them.
var asks = []string{
	"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", "*1\r\n$4\r\nPING\r\n", "*3\r\n$7\r\nEVALSHA\r\n$1\r\na\r\n$1\r\n0\r\n", "*1\r\n$4\r\nROLE\r\n",
	"*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n", "*2\r\n$11\r\nUNSUBSCRIBE\r\n$1\r\na\r\n",
	"*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$1\r\na\r\n",
}

// follow writes commands and reads a response in pieces of so many bytes. passed is how many bytes
// of the response were passed on before the error.
func follow(asked uint8, response string, piece int) (passed int, err error) {
	var p protocol
	for i, ask := range asks {
		if asked&(1<<i) != 0 {
			for rest := ask; rest != ""; rest = rest[min(piece, len(rest)):] {
				p.wrote([]byte(rest[:min(piece, len(rest))]))
			}
		}
	}
	for rest := response; rest != ""; rest = rest[min(piece, len(rest)):] {
		n, err := p.read([]byte(rest[:min(piece, len(rest))]))
		if passed += n; err != nil {
			return passed, err
		}
	}
	return passed, nil
}

// The verdict is the same however the bytes are split, and nothing behind a breach is
// passed on.
func FuzzProtocol(f *testing.F) {
	for _, response := range hostile {
		f.Add(uint8(255), strings.TrimSuffix(response, endless), uint8(3))
	}
	f.Add(uint8(0b10100100), "$0000000000000900000\r\n", uint8(10))
	f.Add(uint8(0b110), "+PONG\r\n$-1\r\n", uint8(2))
	f.Add(uint8(0b10000), ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n+subscribe\r\n+b\r\n:2\r\n", uint8(5))
	f.Add(uint8(0b100000), "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:1\r\n%1\r\n+ip\r\n_\r\n", uint8(7))
	f.Fuzz(func(t *testing.T, asked uint8, response string, piece uint8) {
		one, want := follow(asked, response, len(response)+1)
		each, got := follow(asked, response, int(piece)+1)
		single, verdict := follow(asked, response, 1)
		if !errors.Is(got, want) || !errors.Is(want, got) || !errors.Is(verdict, want) || !errors.Is(want, verdict) {
			t.Fatalf("%q: %v in pieces of %d and %v in bytes, want %v", response, got, int(piece)+1, verdict, want)
		}
		if one > single || each > single {
			t.Fatalf("%q: %d and %d bytes are passed on, want %d at most", response, one, each, single)
		}
		read(t, asked, response[:single])
	})
}

// read reads what is passed on by the rules alone, and fails beyond a bound.
func read(t *testing.T, asked uint8, response string) {
	in := bufio.NewReader(strings.NewReader(response))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if len(line) > maxLine+1 {
				t.Fatalf("a line of %d bytes", len(line))
			}
			return
		}
		text := strings.TrimSuffix(line[1:], "\r\n")
		if typ := line[0]; strings.IndexByte("$*%>", typ) >= 0 && text != "-1" {
			most := maxElements
			if typ == '$' {
				most = maxBulk
			}
			n, ok := number([]byte(text), most)
			if !ok {
				t.Fatalf("%q has the length %q", response, text)
			}
			if typ == '$' {
				if _, err := io.CopyN(io.Discard, in, int64(n)+2); err != nil {
					return
				}
			}
		} else if strings.IndexByte("+-:_$*", typ) < 0 {
			t.Fatalf("%q has the type %q", response, typ)
		}
	}
}

func TestProtocolIsLinear(t *testing.T) {
	for name, response := range map[string]string{"numbers": ":1\r\n", "arrays": "*1\r\n:1\r\n", "texts": "$1\r\na\r\n", "errors": "-a b\r\n"} {
		t.Run(name, func(t *testing.T) {
			ask := asks[2]
			if name == "arrays" {
				ask = asks[3]
			}
			input := func(size int) [2][]byte {
				return [2][]byte{[]byte(strings.Repeat(ask, size)), []byte(strings.Repeat(response, size))}
			}
			lineartest.Check(t, 1000, input, func(both [2][]byte) {
				var p protocol
				p.wrote(both[0])
				if n, err := p.read(both[1]); err != nil {
					t.Fatalf("read: %v, %v", n, err)
				}
			})
		})
	}
}

// Following a connection allocates nothing.
func TestProtocolAllocates(t *testing.T) {
	var p protocol
	ask, response := []byte(strings.Repeat(asks[2], 64)), []byte(strings.Repeat("$4\r\nwell\r\n", 64))
	if n := testing.AllocsPerRun(100, func() {
		p.wrote(ask)
		if _, err := p.read(response); err != nil {
			t.Fatalf("error %v, want none", err)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// BenchmarkGuard compares round trips over a guarded connection, 64 commands at a time, with
// those over one that is not.
func BenchmarkGuard(b *testing.B) {
	server, err := redistest.Open(b.TempDir())
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(server.Kill)
	ask := []byte(strings.Repeat("*3\r\n$4\r\nEVAL\r\n$10\r\nreturn 'a'\r\n$1\r\n0\r\n", 64))
	want := len("$1\r\na\r\n") * 64
	dial := func(isGuarded bool) net.Conn {
		conn, err := net.Dial("tcp", server.Address)
		if err != nil {
			b.Fatalf("error %v, want none", err)
		}
		b.Cleanup(func() { conn.Close() })
		if isGuarded {
			return &guarded{Conn: conn, pace: new(pace)}
		}
		return conn
	}
	var took [2]time.Duration
	conns, in := [2]net.Conn{dial(false), dial(true)}, make([]byte, want)
	for b.Loop() {
		for i, conn := range conns { // in alternating rounds
			begun := time.Now()
			if _, err := conn.Write(ask); err != nil {
				b.Fatalf("error %v, want none", err)
			}
			if _, err := io.ReadFull(conn, in); err != nil {
				b.Fatalf("error %v, want none", err)
			}
			took[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "guarded/unguarded")
}
