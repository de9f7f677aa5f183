package api

import (
	"bytes"
	"cmp"
	"mime"
	"net/http"
	"strconv"
)

// HeldResponse keeps a response of success back until Release. All others, and those that
// are not short JSON, go through.
type HeldResponse struct {
	http.ResponseWriter
	Status int // 0 before there is an answer
	Body   bytes.Buffer
	free   bool // the answer goes through

	// Max bounds the answer that is held, in bytes: MaxHeld if it is 0.
	Max int

	// HoldsGzip means that an answer is held which is compressed with gzip, too.
	HoldsGzip bool

	// Passing, if not nil, is called before an answer goes through that is not
	// held. That may take long: the server reads what is left of a request first.
	Passing func()
}

// MaxHeld bounds an answer that is held, in bytes. Answers to uploads have some
// hundred kilobytes at most.
const MaxHeld = 8 << 20

// IsHeld reports whether there is an answer of success, not yet released.
func (a *HeldResponse) IsHeld() bool { return a.Status != 0 && !a.free }

// WriteHeader decides whether the response is held.
func (a *HeldResponse) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		a.ResponseWriter.WriteHeader(status) // there will be another
		return
	}
	if a.Status != 0 {
		return
	}
	a.Status = status
	header := a.Header()
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	encoding := header.Get("Content-Encoding")
	isReadable := encoding == "" || encoding == "identity" || encoding == "gzip" && a.HoldsGzip
	if status == http.StatusNoContent || status < http.StatusMultipleChoices && mediaType == "application/json" && isReadable {
		return
	}
	if a.Passing != nil {
		a.Passing()
	}
	a.Release()
}

// Write holds what is written, unless the response goes through.
func (a *HeldResponse) Write(p []byte) (int, error) {
	if a.Status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.free && a.Body.Len()+len(p) > cmp.Or(a.Max, MaxHeld) {
		a.Release()
	}
	if a.free {
		return a.ResponseWriter.Write(p)
	}
	return a.Body.Write(p)
}

// FlushError flushes what goes through (see [http.ResponseController]).
func (a *HeldResponse) FlushError() error {
	if !a.free {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (a *HeldResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Release lets the answer go through, if there is one.
func (a *HeldResponse) Release() {
	if a.free || a.Status == 0 {
		return
	}
	a.free = true
	a.ResponseWriter.WriteHeader(a.Status)
	if a.Body.Len() > 0 {
		a.ResponseWriter.Write(a.Body.Bytes()) // an error means that the caller has left
	}
	a.Body = bytes.Buffer{}
}

// Replace puts another body in place of the one that is held.
func (a *HeldResponse) Replace(body []byte) {
	a.Body = *bytes.NewBuffer(body)
	a.Header().Del("Etag")
	a.Header().Set("Content-Length", strconv.Itoa(a.Body.Len()))
}
