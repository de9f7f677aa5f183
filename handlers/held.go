package handlers

import (
	"bytes"
	"cmp"
	"mime"
	"net/http"
	"strconv"
)

// heldAnswer holds an answer of success back until it is released. All others,
// and those that are not short JSON, go through.
type heldAnswer struct {
	http.ResponseWriter
	status int // 0 before there is an answer
	body   bytes.Buffer
	free   bool // the answer goes through

	// max bounds the answer that is held, in bytes: maxHeld if it is 0.
	max int

	// holdsGzip means that an answer is held which is compressed with gzip, too.
	holdsGzip bool

	// passing, if not nil, is called before an answer goes through that is not
	// held. That may take long: the server reads what is left of a request first.
	passing func()
}

// maxHeld bounds an answer that is held, in bytes. Answers to uploads have some
// hundred kilobytes at most.
const maxHeld = 8 << 20

// holds reports whether there is an answer of success, not yet released.
func (a *heldAnswer) holds() bool { return a.status != 0 && !a.free }

// WriteHeader implements [http.ResponseWriter].
func (a *heldAnswer) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		a.ResponseWriter.WriteHeader(status) // there will be another
		return
	}
	if a.status != 0 {
		return
	}
	a.status = status
	header := a.Header()
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	encoding := header.Get("Content-Encoding")
	isReadable := encoding == "" || encoding == "identity" || encoding == "gzip" && a.holdsGzip
	if status == http.StatusNoContent || status < http.StatusMultipleChoices && mediaType == "application/json" && isReadable {
		return
	}
	if a.passing != nil {
		a.passing()
	}
	a.release()
}

// Write implements [http.ResponseWriter].
func (a *heldAnswer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.free && a.body.Len()+len(p) > cmp.Or(a.max, maxHeld) {
		a.release()
	}
	if a.free {
		return a.ResponseWriter.Write(p)
	}
	return a.body.Write(p)
}

// FlushError flushes what goes through (see [http.ResponseController]).
func (a *heldAnswer) FlushError() error {
	if !a.free {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (a *heldAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// release lets the answer go through, if there is one.
func (a *heldAnswer) release() {
	if a.free || a.status == 0 {
		return
	}
	a.free = true
	a.ResponseWriter.WriteHeader(a.status)
	if a.body.Len() > 0 {
		a.ResponseWriter.Write(a.body.Bytes()) // an error means that the caller has left
	}
	a.body = bytes.Buffer{}
}

// replace puts another body in place of the one that is held.
func (a *heldAnswer) replace(body []byte) {
	a.body = *bytes.NewBuffer(body)
	a.Header().Del("Etag")
	a.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
}
