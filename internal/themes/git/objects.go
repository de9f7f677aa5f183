package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file reads objects out of a pack that a server has sent, which may be made
// to take as much memory as possible: one byte of a pack can stand for a thousand
// bytes of an object, and one object can be made from thousands of others
// (deltas). So most objects are never in memory: of a file that is no delta only
// the hash is computed, as it goes by.
//
// go-git's own packfile.Parser (5.x) is not bounded: the packs of TestHostileServer
// made it take up to 1,075 MB, and one of them kept it busy for more than five minutes,
// whatever the deadline.

const (
	// maxObjects bounds how many files, folders and commits a pack may hold.
	maxObjects = 100_000

	// maxCommit and maxTree bound a commit and a folder, in bytes. A folder has
	// some 40 bytes for each entry.
	maxCommit = 1 << 20
	maxTree   = 4 << 20

	// maxMemory bounds what is in memory at once, in bytes, to make objects out
	// of deltas.
	maxMemory = 16 << 20

	// maxChain is how many deltas may be applied to one another, which is Git's
	// own bound.
	maxChain = 4095
)

// objects are what a pack holds.
type objects struct {
	scanner *packfile.Scanner
	hasher  plumbing.Hasher       // of the object that is scanned
	list    []packed              // by offset
	byHash  map[plumbing.Hash]int // indexes of list; not of what was left out
	leftOut int                   // deltas that would have taken too much memory
}

// packed is an object as it lies in a pack.
type packed struct {
	offset int64
	hash   plumbing.Hash       // of a delta, once it is applied
	kind   plumbing.ObjectType // likewise
	length int64               // in bytes, of the object, or of the delta
	size   int64               // in bytes, of the object that it is or makes
	base   int                 // what the delta is applied to; -1 if it is no delta
}

// deltas are indexes of deltas that are not applied yet, by what they are to be
// applied to.
type deltas struct {
	byBase map[int][]int
	byHash map[plumbing.Hash][]int
}

// unpack lists what a pack holds. Nothing is unpacked that is larger than limit,
// in bytes, or all together more than four times that.
func unpack(ctx context.Context, pack io.ReadSeeker, limit int64) (*objects, error) {
	o := &objects{scanner: packfile.NewScanner(pack), hasher: plumbing.NewHasher(plumbing.BlobObject, 0)}
	waiting := deltas{make(map[int][]int), make(map[plumbing.Hash][]int)}
	if err := o.scan(ctx, limit, waiting); err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	if err := o.applyAll(ctx, waiting); err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	return o, nil
}

// scan reads the pack from its start to its end.
func (o *objects) scan(ctx context.Context, limit int64, waiting deltas) error {
	_, count, err := o.scanner.Header()
	if err != nil {
		return err
	}
	if count > maxObjects {
		return fmt.Errorf("the repository is too large: %d files, folders and commits", count)
	}
	o.list = make([]packed, 0, count)
	o.byHash = make(map[plumbing.Hash]int, count)
	var total int64
	for i := range int(count) {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := o.scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		one, err := o.scanOne(header, limit)
		if err != nil {
			return err
		}
		if total += one.length; header.Type.IsDelta() {
			total += one.size
		}
		if total > 4*limit {
			return fmt.Errorf("the repository is too large: more than %d bytes unpacked", 4*limit)
		}
		switch header.Type {
		case plumbing.OFSDeltaObject:
			base, ok := slices.BinarySearchFunc(o.list, header.OffsetReference, func(p packed, offset int64) int { return cmp.Compare(p.offset, offset) })
			if !ok {
				return packfile.ErrReferenceDeltaNotFound
			}
			waiting.byBase[base] = append(waiting.byBase[base], i)
		case plumbing.REFDeltaObject:
			waiting.byHash[header.Reference] = append(waiting.byHash[header.Reference], i)
		default:
			o.byHash[one.hash] = i
		}
		o.list = append(o.list, one)
	}
	_, err = o.scanner.Checksum()
	return err
}

// scanOne reads the object whose header was read last.
func (o *objects) scanOne(header *packfile.ObjectHeader, limit int64) (packed, error) {
	one := packed{offset: header.Offset, kind: header.Type, length: header.Length, size: header.Length, base: -1}
	if one.length < 0 || one.length > limit {
		return one, fmt.Errorf("the repository is too large: %d bytes in one file", one.length)
	}
	var start prefix
	o.hasher.Reset()
	fmt.Fprintf(o.hasher, "%s %d\x00", header.Type, header.Length)
	content := io.Writer(o.hasher)
	if header.Type.IsDelta() {
		content = &start
	}
	switch n, _, err := o.scanner.NextObject(content); {
	case err != nil:
		return one, err
	case n != header.Length:
		return one, packfile.ErrInflatedSizeMismatch
	case !header.Type.IsDelta():
		one.hash = o.hasher.Sum()
		return one, nil
	}
	made, err := start.target()
	if err == nil && made > uint64(limit) {
		err = fmt.Errorf("the repository is too large: %d bytes in one file", made)
	}
	one.size = int64(min(made, 1<<62))
	return one, err
}

// applyAll applies the deltas, each once, to learn the hashes of what they make.
// What would take too much memory is left out, and all that is made from it.
func (o *objects) applyAll(ctx context.Context, waiting deltas) error {
	for i, one := range o.list {
		if one.kind.IsDelta() || len(waiting.byBase[i]) == 0 && len(waiting.byHash[one.hash]) == 0 {
			continue
		}
		if one.size > maxMemory {
			o.leftOut++
			continue
		}
		content, err := o.inflate(i)
		if err != nil {
			return err
		}
		if err := o.apply(ctx, waiting, i, content, one.size, 1); err != nil {
			return err
		}
	}
	if len(waiting.byBase)+len(waiting.byHash) > 0 && o.leftOut == 0 {
		return packfile.ErrReferenceDeltaNotFound
	}
	return nil
}

// apply applies the deltas that wait for an object, and those that wait for what
// they make. inMemory is what is in memory by then, in bytes.
func (o *objects) apply(ctx context.Context, waiting deltas, base int, content []byte, inMemory int64, depth int) error {
	next := slices.Concat(waiting.byBase[base], waiting.byHash[o.list[base].hash])
	delete(waiting.byBase, base)
	delete(waiting.byHash, o.list[base].hash)
	if len(next) > 0 && depth > maxChain {
		return fmt.Errorf("more than %d deltas are made from one another", maxChain)
	}
	for _, i := range next {
		if err := ctx.Err(); err != nil {
			return err
		}
		one := &o.list[i]
		if inMemory+one.length+one.size > maxMemory {
			o.leftOut++
			continue
		}
		made, err := o.patch(i, content)
		if err != nil {
			return err
		}
		one.kind, one.base = o.list[base].kind, base
		one.hash = plumbing.ComputeHash(one.kind, made)
		o.byHash[one.hash] = i
		if err := o.apply(ctx, waiting, i, made, inMemory+one.size, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// patch applies a delta to the content of its base.
func (o *objects) patch(i int, base []byte) ([]byte, error) {
	delta, err := o.inflate(i)
	if err != nil {
		return nil, err
	}
	return packfile.PatchDelta(base, delta)
}

// inflate decompresses an object that is no delta, or a delta. Its length has been found
// to be right.
func (o *objects) inflate(i int) ([]byte, error) {
	if _, err := o.scanner.SeekObjectHeader(o.list[i].offset); err != nil {
		return nil, err
	}
	content := bytes.NewBuffer(make([]byte, 0, o.list[i].length))
	_, _, err := o.scanner.NextObject(content)
	return content.Bytes(), err
}

// errTooLong says that an object is longer than was asked for.
var errTooLong = errors.New("too long")

// content reads the object of a kind that is under that hash, if it has most bytes at
// most. Errors: plumbing.ErrObjectNotFound, errTooLong.
func (o *objects) content(hash plumbing.Hash, kind plumbing.ObjectType, most int64) ([]byte, error) {
	at, ok := o.byHash[hash]
	switch {
	case !ok && o.leftOut > 0:
		return nil, fmt.Errorf("the repository is too large: a %s is made from others of more than %d bytes", kind, maxMemory)
	case !ok:
		return nil, fmt.Errorf("the response lacks %s: %w", hash, plumbing.ErrObjectNotFound)
	case o.list[at].kind != kind:
		return nil, fmt.Errorf("%s is a %s, and no %s", hash, o.list[at].kind, kind)
	case o.list[at].size > most:
		return nil, fmt.Errorf("the repository is too large: a %s is %w, with %d bytes", kind, errTooLong, o.list[at].size)
	}
	chain := []int{at}
	for o.list[at].base >= 0 {
		at = o.list[at].base
		chain = append(chain, at)
	}
	content, err := o.inflate(at)
	for _, i := range slices.Backward(chain[:len(chain)-1]) {
		if err != nil {
			return nil, err
		}
		content, err = o.patch(i, content)
	}
	return content, err
}

func (o *objects) treeOf(commit plumbing.Hash) (plumbing.Hash, error) {
	text, err := o.content(commit, plumbing.CommitObject, maxCommit)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	tree, ok := bytes.CutPrefix(line, []byte("tree "))
	if !ok || !plumbing.IsHash(string(tree)) {
		return plumbing.ZeroHash, errors.New("malformed commit")
	}
	return plumbing.NewHash(string(tree)), nil
}

// entry looks a name up in a tree. Errors: ErrNoFile.
func (o *objects) entry(tree plumbing.Hash, name string) (plumbing.Hash, filemode.FileMode, error) {
	text, err := o.content(tree, plumbing.TreeObject, maxTree)
	if err != nil {
		return plumbing.ZeroHash, filemode.Empty, err
	}
	misnamed := ""
	for len(text) > 0 {
		mode, rest, _ := bytes.Cut(text, []byte(" "))
		found, rest, ok := bytes.Cut(rest, []byte{0})
		var hash plumbing.Hash
		if !ok || len(rest) < len(hash) {
			return plumbing.ZeroHash, filemode.Empty, errors.New("malformed tree")
		}
		text = rest[copy(hash[:], rest):]
		if string(found) == name {
			mode, err := filemode.New(string(mode))
			return hash, mode, err
		}
		if manifest.IsMisnamed(string(found), name) {
			misnamed = string(found)
		}
	}
	return plumbing.ZeroHash, filemode.Empty, &Error{Kind: ErrNoFile, Reason: name, Misnamed: misnamed}
}

// prefix keeps the first bytes that are written to it: of a delta, the size of
// what it is made from and of what it makes.
type prefix []byte

func (p *prefix) Write(text []byte) (int, error) {
	*p = append(*p, text[:min(len(text), 2*binary.MaxVarintLen64-len(*p))]...)
	return len(text), nil
}

// target reads the size of what a delta makes.
func (p *prefix) target() (uint64, error) {
	_, n := binary.Uvarint(*p)
	if n > 0 {
		if size, m := binary.Uvarint((*p)[n:]); m > 0 {
			return size, nil
		}
	}
	return 0, errors.New("malformed delta")
}

// spool is a pack in memory, in pieces: so it does not move as it grows, which
// would take twice its memory.
type spool struct {
	pieces [][]byte // all but the last are full
	size   int64
	at     int64 // where the next Read reads
}

const pieceSize = 64 << 10

func (s *spool) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		piece := make([]byte, pieceSize)
		m, err := io.ReadFull(r, piece)
		s.pieces, s.size, n = append(s.pieces, piece[:m]), s.size+int64(m), n+int64(m)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func (s *spool) Read(p []byte) (int, error) {
	if s.at >= s.size {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[s.at/pieceSize][s.at%pieceSize:])
	s.at += int64(n)
	return n, nil
}

func (s *spool) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errors.New("before the start")
	}
	s.at = offset
	return offset, nil
}
