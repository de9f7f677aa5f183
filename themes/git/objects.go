package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// maxObjects bounds how many files, folders and commits a pack may hold.
const maxObjects = 100_000

// objects are what a pack holds, by their hashes.
type objects struct{ pack *packfile.Packfile }

// unpack indexes a pack. Nothing is unpacked that could be larger than limit, or
// all together more than four times that.
func unpack(ctx context.Context, pack []byte, limit int64) (*objects, error) {
	if err := measure(ctx, pack, limit); err != nil {
		return nil, err
	}
	index := &indexer{ctx: ctx}
	// Without a storage the parser unpacks into memory only what it is at, and
	// a bounded number of those that others are made from.
	parser, err := packfile.NewParser(packfile.NewScanner(bytes.NewReader(pack)), index)
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(); err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	found, err := index.Index()
	if err != nil {
		return nil, err
	}
	return &objects{packfile.NewPackfile(found, nil, file{bytes.NewReader(pack)}, 0)}, nil
}

// measure returns an error if the pack says that it holds more than it may.
func measure(ctx context.Context, pack []byte, limit int64) error {
	scanner := packfile.NewScanner(bytes.NewReader(pack))
	_, count, err := scanner.Header()
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	if count > maxObjects {
		return fmt.Errorf("the repository is too large: %d files, folders and commits", count)
	}
	var total int64
	for range count {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		size := header.Length
		if size > limit {
			return fmt.Errorf("the repository is too large: %d bytes in one file", size)
		}
		var start prefix
		if _, _, err := scanner.NextObject(&start); err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		if header.Type.IsDelta() {
			made, err := start.target()
			if err != nil {
				return err
			}
			if made > uint64(limit) {
				return fmt.Errorf("the repository is too large: %d bytes in one file", made)
			}
			size += int64(made)
		}
		if total += size; total > 4*limit {
			return fmt.Errorf("the repository is too large: more than %d bytes unpacked", 4*limit)
		}
	}
	return nil
}

// prefix keeps the first bytes that are written to it: of a delta, the size of
// what it is made from and of what it makes.
type prefix []byte

func (p *prefix) Write(text []byte) (int, error) {
	*p = append(*p, text[:min(len(text), 2*binary.MaxVarintLen64-len(*p))]...)
	return len(text), nil
}

// target returns the size of what a delta makes.
func (p *prefix) target() (uint64, error) {
	_, n := binary.Uvarint(*p)
	if n > 0 {
		if size, m := binary.Uvarint((*p)[n:]); m > 0 {
			return size, nil
		}
	}
	return 0, errors.New("unpacking: malformed delta")
}

// indexer notes where in a pack what begins, for as long as there is time.
type indexer struct {
	idxfile.Writer
	ctx context.Context
}

// OnInflatedObjectHeader implements [packfile.Observer].
func (i *indexer) OnInflatedObjectHeader(t plumbing.ObjectType, size, at int64) error {
	if err := i.ctx.Err(); err != nil {
		return err
	}
	return i.Writer.OnInflatedObjectHeader(t, size, at)
}

// content returns what is under that hash.
func (o *objects) content(hash plumbing.Hash) ([]byte, error) {
	found, err := o.pack.Get(hash)
	if err != nil {
		return nil, err
	}
	reader, err := found.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// decode reads the commit or tree that is under that hash into it.
func (o *objects) decode(hash plumbing.Hash, into interface {
	Decode(plumbing.EncodedObject) error
},
) error {
	found, err := o.pack.Get(hash)
	if err != nil {
		return fmt.Errorf("the answer lacks %s: %w", hash, err)
	}
	return into.Decode(found)
}

// file is a pack in memory, in the form in which a [packfile.Packfile] takes it.
type file struct{ *bytes.Reader }

func (file) Name() string              { return "pack" }
func (file) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (file) Truncate(int64) error      { return errors.ErrUnsupported }
func (file) Lock() error               { return errors.ErrUnsupported }
func (file) Unlock() error             { return errors.ErrUnsupported }
func (file) Close() error              { return nil }
