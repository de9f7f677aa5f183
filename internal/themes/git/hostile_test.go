package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// packWriter writes a pack as no git would.
type packWriter struct {
	w    *bufio.Writer // with sum
	sum  hash.Hash
	zlib *zlib.Writer
	at   int64
	last int64 // where the last object starts
}

func newPackWriter(w io.Writer, count uint32) *packWriter {
	p := &packWriter{sum: sha1.New()}
	p.zlib, _ = zlib.NewWriterLevel(nil, zlib.BestSpeed)
	p.w = bufio.NewWriterSize(io.MultiWriter(w, p.sum), 64<<10)
	p.write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), count))
	return p
}

func (p *packWriter) write(text []byte) { p.Write(text) }

func (p *packWriter) Write(text []byte) (int, error) {
	p.at += int64(len(text))
	return p.w.Write(text)
}

// object writes an object that claims to be of a size. Between its header and its
// content comes what it is made from.
func (p *packWriter) object(kind plumbing.ObjectType, size int64, base []byte, content io.Reader) {
	p.last = p.at
	first := byte(kind)<<4 | byte(size&15)
	header := []byte{}
	for size >>= 4; size > 0; size >>= 7 {
		header, first = append(header, first|0x80), byte(size&0x7f)
	}
	header = append(header, first)
	p.write(append(header, base...))
	p.zlib.Reset(p)
	io.Copy(p.zlib, content)
	p.zlib.Close()
}

func (p *packWriter) whole(kind plumbing.ObjectType, content string) {
	p.object(kind, int64(len(content)), nil, strings.NewReader(content))
}

// delta writes a delta of the last object, which has a size.
func (p *packWriter) delta(size, made int64, commands []byte) {
	text := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(made))
	text = append(text, commands...)
	back := p.at - p.last
	offset := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		offset = append([]byte{0x80 | byte(back&0x7f)}, offset...)
	}
	p.object(plumbing.OFSDeltaObject, int64(len(text)), offset, bytes.NewReader(text))
}

func (p *packWriter) end() {
	p.w.Flush()
	p.w.Write(p.sum.Sum(nil))
	p.w.Flush()
}

// copyAll are the commands of a delta that copy so many bytes of the base.
func copyAll(size int64) (commands []byte) {
	const most = 0xffff
	for at := int64(0); at < size; at += most {
		n := min(most, size-at)
		commands = append(commands, 0xbf, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(n), byte(n>>8))
	}
	return commands
}

// zeros and random are that many bytes.
func zeros(n int64) io.Reader { return io.MultiReader(io.LimitReader(zero{}, n)) }

func random(n int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// The manifest, the root that it is in and the commit, which hostile packs start
// with.
var (
	blob   = plumbing.ComputeHash(plumbing.BlobObject, []byte("a\n"))
	tree   = "100644 " + name + "\x00" + string(blob[:])
	root   = plumbing.ComputeHash(plumbing.TreeObject, []byte(tree))
	commit = "tree " + root.String() + "\n\na\n"
	head   = plumbing.ComputeHash(plumbing.CommitObject, []byte(commit))
)

func (p *packWriter) theme() {
	p.whole(plumbing.CommitObject, commit)
	p.whole(plumbing.TreeObject, tree)
	p.whole(plumbing.BlobObject, "a\n")
}

// hostile is a git server that answers what it is told to.
type hostile struct {
	list func(w io.Writer) // instead of the branches
	pack func(w io.Writer)
	raw  func(w io.Writer) // instead of the pack, and what comes before it
	head plumbing.Hash
}

func (h hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/info/refs") {
		line := fmt.Sprintf("%s HEAD\x00ofs-delta", h.head)
		if h.raw != nil {
			line += " side-band-64k"
		}
		fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%s", len(line)+4, line)
		if h.list != nil {
			h.list(w)
		}
		io.WriteString(w, "0000")
		return
	}
	io.Copy(io.Discard, r.Body)
	io.WriteString(w, "0008NAK\n")
	if h.raw != nil {
		h.raw(w)
		return
	}
	h.pack(w)
}

// peak measures the heap while run runs, in bytes above the heap before.
func peak(run func()) uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	runtime.GC() // what is pooled goes with the second
	before := heap()
	most, done := before, make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			most = max(most, heap())
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	run()
	close(done)
	wg.Wait()
	return most - before
}

// packOf answers with a pack of so many objects.
func packOf(objects uint32, write func(p *packWriter)) hostile {
	return hostile{pack: func(w io.Writer) {
		p := newPackWriter(w, objects)
		write(p)
		p.end()
	}}
}

// themeAnd answers with a pack of the theme and so many other objects.
func themeAnd(others uint32, write func(p *packWriter)) hostile {
	return packOf(3+others, func(p *packWriter) {
		p.theme()
		write(p)
	})
}

// zeroFiles answers with the theme and files of zeros, which are small until they are unpacked.
func zeroFiles(count uint32) hostile {
	return themeAnd(count, func(p *packWriter) {
		for range count {
			p.object(plumbing.BlobObject, 15*mb, nil, zeros(15*mb))
		}
	})
}

func forever(text string) func(io.Writer) {
	text = strings.Repeat(text, 1+8000/len(text))
	return func(w io.Writer) {
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
}

const mb = 1 << 20

// attack is what a server sends to take memory or time.
type attack struct {
	name   string
	server hostile
	text   string // of the error; empty if the manifest is read
	limit  int64  // of what is received, if it is not the default
}

func attacks() []attack {
	longTree := plumbing.ComputeHash(plumbing.TreeObject, make([]byte, 15*mb))
	ofLongTree := "tree " + longTree.String() + "\n\na\n"
	longRoot := packOf(2, func(p *packWriter) {
		p.whole(plumbing.CommitObject, ofLongTree)
		p.object(plumbing.TreeObject, 15*mb, nil, zeros(15*mb))
	})
	longRoot.head = plumbing.ComputeHash(plumbing.CommitObject, []byte(ofLongTree))
	longCommit := packOf(1, func(p *packWriter) { p.object(plumbing.CommitObject, 15*mb, nil, zeros(15*mb)) })
	longCommit.head = plumbing.ComputeHash(plumbing.CommitObject, make([]byte, 15*mb))
	return []attack{
		{name: "a large file", server: themeAnd(1, func(p *packWriter) {
			p.object(plumbing.BlobObject, 15*mb, nil, random(15*mb))
		}), limit: 16 * mb},
		{name: "files that unpack to much", server: zeroFiles(4), limit: 16 * mb},
		{name: "files that unpack to too much", server: zeroFiles(5), text: "more than 67108864 bytes unpacked", limit: 16 * mb},
		{name: "a file that claims a size", server: themeAnd(1, func(p *packWriter) {
			p.object(plumbing.BlobObject, 1<<40, nil, strings.NewReader("a"))
		}), text: "1099511627776 bytes in one file"},
		{name: "a file that is larger than it claims", server: themeAnd(1, func(p *packWriter) {
			p.object(plumbing.BlobObject, 10, nil, zeros(100*mb))
		}), text: "inflate"},
		{name: "a delta that claims a size", server: themeAnd(1, func(p *packWriter) {
			p.delta(2, 1<<62, nil)
		}), text: "4611686018427387904 bytes in one file"},
		{name: "a delta that makes much of little", server: themeAnd(1+3, func(p *packWriter) {
			p.whole(plumbing.BlobObject, strings.Repeat("b", 0xffff))
			base := p.last
			for range 3 {
				p.last = base
				p.delta(0xffff, 500*0xffff, bytes.Repeat(copyAll(0xffff), 500))
			}
		})},
		{name: "deltas of a large file", server: themeAnd(1+1000, func(p *packWriter) {
			p.object(plumbing.BlobObject, 60*mb, nil, zeros(60*mb))
			large := p.last
			for range 1000 {
				p.last = large
				p.delta(60*mb, 1, []byte{1, 'a'})
			}
		})},
		{name: "a chain of deltas", server: themeAnd(1+4000, func(p *packWriter) {
			p.whole(plumbing.BlobObject, strings.Repeat("b", 60_000))
			for range 4000 {
				p.delta(60_000, 60_000, copyAll(60_000))
			}
		})},
		{name: "a chain of small deltas", server: themeAnd(100_000-3, func(p *packWriter) {
			p.whole(plumbing.BlobObject, "b")
			for range 100_000 - 4 {
				p.delta(1, 1, copyAll(1))
			}
		}), text: "made from one another"},
		{name: "deltas of a file that is there many times", server: themeAnd(40_000-3, func(p *packWriter) {
			base := strings.Repeat("b", 1000)
			hash := plumbing.ComputeHash(plumbing.BlobObject, []byte(base))
			delta := append(binary.AppendUvarint(binary.AppendUvarint(nil, 1000), 1000), copyAll(1000)...)
			for range (40_000 - 3) / 2 {
				p.whole(plumbing.BlobObject, base)
				p.object(plumbing.REFDeltaObject, int64(len(delta)), hash[:], bytes.NewReader(delta))
			}
			p.whole(plumbing.BlobObject, "b")
		})},
		{name: "many files", server: themeAnd(100_000-3, func(p *packWriter) {
			for i := range 100_000 - 3 {
				p.whole(plumbing.BlobObject, strconv.Itoa(i))
			}
		})},
		{name: "all of this together", server: themeAnd(100_000-3, func(p *packWriter) {
			p.object(plumbing.BlobObject, 58*mb, nil, random(58*mb))
			p.object(plumbing.BlobObject, 7*mb, nil, zeros(7*mb))
			p.delta(7*mb, 8*mb, append(copyAll(7*mb), copyAll(mb)...))
			for i := range 100_000 - 6 {
				p.whole(plumbing.BlobObject, strconv.Itoa(i))
			}
		})},
		{name: "a long root", server: longRoot, text: "a tree is too long"},
		{name: "a long commit", server: longCommit, text: "a commit is too long"},
		{name: "a manifest that is made from a large file", server: packOf(4, func(p *packWriter) {
			p.whole(plumbing.CommitObject, commit)
			p.whole(plumbing.TreeObject, tree)
			p.object(plumbing.BlobObject, 17*mb, nil, zeros(17*mb))
			p.delta(17*mb, 2, []byte("\x02a\n"))
		}), text: "made from others"},
		{name: "many branches", server: hostile{list: forever("003d" + strings.Repeat("1", 40) + " refs/heads/aaaaa")}, text: "more than 8388608 bytes of branches"},
		{name: "a pack that never ends", server: hostile{pack: forever("PACK")}, text: "more than 67108864 bytes were received"},
		{name: "progress that never ends", server: hostile{raw: forever("0006\x02a")}, text: "more than 8388608 bytes were received", limit: 8 << 20},
		{name: "acknowledgements that never end", server: hostile{pack: forever("0008NAK\n")}, text: "more than 8388608 bytes were received", limit: 8 << 20},
		{name: "empty pieces of a pack that never end", server: hostile{raw: forever("0005\x01")}, text: "more than 8388608 bytes were received", limit: 8 << 20},
	}
}

// Whatever a server sends, a reading takes no more memory than the documentation
// says (docs/theme_manifest.md#refresh), and comes to an end.
func TestHostileServer(t *testing.T) {
	lineartest.Volume(t)
	const most = 160 << 20 // bytes
	for _, test := range attacks() {
		t.Run(test.name, func(t *testing.T) {
			if test.server.head.IsZero() {
				test.server.head = head
			}
			started := httptest.NewServer(test.server)
			defer started.Close()
			repository := newRepository(t, Config{URL: started.URL + "/theme", MaxBytes: test.limit, Timeout: 2 * time.Minute})
			var got []byte
			var err error
			start := time.Now()
			used := peak(func() { got, err = held(t, repository) })
			t.Logf("%d MB, %v", used/1e6, time.Since(start).Round(time.Millisecond))
			if test.text != "" {
				expect(t, err, ErrFailed, test.text)
			} else if err != nil || string(got) != "a\n" {
				t.Errorf("got %q, %v, want no error, %q", got, err, "a\n")
			}
			if used > most {
				t.Errorf("it took %d bytes", used)
			}
		})
	}
}
