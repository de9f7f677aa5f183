package events

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// This file compresses responses, each once for all of its readers. A compressed response is a page of its own.

const (
	// leastGzip is the size from which compression is worth it, in bytes: Caddy's encode has the same.
	leastGzip = 512

	// mostGzip bounds what one reader costs who asks for each page once, a little differently: 40 ms of CPU
	// time where the text hardly repeats.
	mostGzip = 256 << 10

	// maxGzips bounds the compressions at once, each with a megabyte of tables.
	maxGzips = 2
)

// GzipTag is the tag of the response when it is compressed. It does not end in "-gzip", which Caddy's encode strips
// from If-None-Match.
func (r *Response) GzipTag() string { return r.Tag + ".gz" }

// Gzip compresses the response (RFC 1952) and reports whether it did. It leaves a small response as it is, a very large one, and any
// while the cache is full or maxGzips others are being compressed.
func (r *Response) Gzip() bool {
	if r.page.size < leastGzip || r.page.size > mostGzip {
		return false
	}
	key, tag, pages := r.page.key, r.GzipTag(), &r.cache.pages
	key.isGzip = true
	compressed := pages.acquire(key)
	if compressed != nil && compressed.etag != tag {
		pages.release(compressed)
		compressed = nil
	}
	if compressed == nil {
		made, _, _ := r.cache.flights.Do(fmt.Sprintf("gzip %s %q", tag, fmt.Sprint(key)), func() (any, error) {
			return r.compress(key), nil
		})
		if compressed = made.(*page); compressed == nil || !pages.retain(compressed) {
			return false
		}
	}
	pages.release(r.page)
	*r = *r.cache.response(compressed)
	return true
}

// compress returns nil while maxGzips others are being compressed.
func (r *Response) compress(key pageKey) *page {
	if !r.cache.gzips.TryAcquire(1) {
		return nil
	}
	defer r.cache.gzips.Release(1)
	var text bytes.Buffer
	w := gzip.NewWriter(&text)
	_, err := io.Copy(w, io.NewSectionReader(r.page, 0, r.page.size))
	if err == nil {
		err = w.Close()
	}
	if err != nil { // a buffer takes all
		return nil
	}
	p := newPage(key, "", "", "", []*piece{newPiece(text.String(), 0)})
	p.etag, p.name = r.GzipTag(), r.Name
	r.cache.pages.put(p)
	return p
}
