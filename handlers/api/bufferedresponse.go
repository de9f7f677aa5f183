package api

import (
	"bytes"
	"cmp"
	"mime"
	"net/http"
	"strconv"
)

// BufferedResponse keeps a response of success back until Release. All others, and those that
// are not short JSON, go through.
type BufferedResponse struct {
	http.ResponseWriter
	Status int // 0 before there is a response
	Body   bytes.Buffer
	free   bool // the response goes through

	// Max bounds the response that is buffered, in bytes: MaxBuffered if it is 0. With BufferNothing
	// all go through, and only the status is noted.
	Max int

	// BuffersGzip means that a response that is compressed with gzip is buffered, too.
	BuffersGzip bool

	// Passing, if not nil, is called before a response goes through that is not
	// buffered. That may take long: the server reads what is left of a request first.
	Passing func()
}

// MaxBuffered bounds a response that is buffered, in bytes. Those to uploads have some
// hundred kilobytes at most.
const MaxBuffered = 8 << 20

// BufferNothing is a Max.
const BufferNothing = -1

// IsBuffered reports whether there is a response of success, not yet released.
func (b *BufferedResponse) IsBuffered() bool { return b.Status != 0 && !b.free }

// WriteHeader decides whether the response is buffered.
func (b *BufferedResponse) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		b.ResponseWriter.WriteHeader(status) // it announces another
		return
	}
	if b.Status != 0 {
		return
	}
	b.Status = status
	if b.Max != BufferNothing && (status == http.StatusNoContent || status < http.StatusMultipleChoices && b.isReadable()) {
		return
	}
	if b.Passing != nil {
		b.Passing()
	}
	b.Release()
}

// isReadable reports whether the response is JSON that can be read.
func (b *BufferedResponse) isReadable() bool {
	mediaType, _, _ := mime.ParseMediaType(b.Header().Get("Content-Type"))
	encoding := b.Header().Get("Content-Encoding")
	return mediaType == "application/json" && (encoding == "" || encoding == "identity" || encoding == "gzip" && b.BuffersGzip)
}

// Write buffers what is written, unless the response goes through.
func (b *BufferedResponse) Write(p []byte) (int, error) {
	if b.Status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	if !b.free && b.Body.Len()+len(p) > cmp.Or(b.Max, MaxBuffered) {
		b.Release()
	}
	if b.free {
		return b.ResponseWriter.Write(p)
	}
	return b.Body.Write(p)
}

// FlushError flushes what goes through (see [http.ResponseController]).
func (b *BufferedResponse) FlushError() error {
	if !b.free {
		return nil
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (b *BufferedResponse) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Release lets the response go through, if there is one.
func (b *BufferedResponse) Release() {
	if b.free || b.Status == 0 {
		return
	}
	b.free = true
	b.ResponseWriter.WriteHeader(b.Status)
	if b.Body.Len() > 0 {
		b.ResponseWriter.Write(b.Body.Bytes()) // an error means that the caller has left
	}
	b.Body = bytes.Buffer{}
}

// Replace puts another body in place of the one that is buffered.
func (b *BufferedResponse) Replace(body []byte) {
	b.Body = *bytes.NewBuffer(body)
	b.Header().Del("Etag")
	b.Header().Set("Content-Length", strconv.Itoa(b.Body.Len()))
}
