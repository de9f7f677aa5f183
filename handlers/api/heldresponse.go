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
	Status int // 0 before there is a response
	Body   bytes.Buffer
	free   bool // the response goes through

	// Max bounds the response that is held, in bytes: MaxHeld if it is 0. With HoldNothing
	// all go through, and only the status is noted.
	Max int

	// HoldsGzip means that a response that is compressed with gzip is held, too.
	HoldsGzip bool

	// Passing, if not nil, is called before a response goes through that is not
	// held. That may take long: the server reads what is left of a request first.
	Passing func()
}

// MaxHeld bounds a response that is held, in bytes. Those to uploads have some
// hundred kilobytes at most.
const MaxHeld = 8 << 20

// HoldNothing is a Max.
const HoldNothing = -1

// IsHeld reports whether there is a response of success, not yet released.
func (h *HeldResponse) IsHeld() bool { return h.Status != 0 && !h.free }

// WriteHeader decides whether the response is held.
func (h *HeldResponse) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		h.ResponseWriter.WriteHeader(status) // it announces another
		return
	}
	if h.Status != 0 {
		return
	}
	h.Status = status
	if h.Max != HoldNothing && (status == http.StatusNoContent || status < http.StatusMultipleChoices && h.isReadable()) {
		return
	}
	if h.Passing != nil {
		h.Passing()
	}
	h.Release()
}

// isReadable reports whether the response is JSON that can be read.
func (h *HeldResponse) isReadable() bool {
	mediaType, _, _ := mime.ParseMediaType(h.Header().Get("Content-Type"))
	encoding := h.Header().Get("Content-Encoding")
	return mediaType == "application/json" && (encoding == "" || encoding == "identity" || encoding == "gzip" && h.HoldsGzip)
}

// Write holds what is written, unless the response goes through.
func (h *HeldResponse) Write(p []byte) (int, error) {
	if h.Status == 0 {
		h.WriteHeader(http.StatusOK)
	}
	if !h.free && h.Body.Len()+len(p) > cmp.Or(h.Max, MaxHeld) {
		h.Release()
	}
	if h.free {
		return h.ResponseWriter.Write(p)
	}
	return h.Body.Write(p)
}

// FlushError flushes what goes through (see [http.ResponseController]).
func (h *HeldResponse) FlushError() error {
	if !h.free {
		return nil
	}
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (h *HeldResponse) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Release lets the response go through, if there is one.
func (h *HeldResponse) Release() {
	if h.free || h.Status == 0 {
		return
	}
	h.free = true
	h.ResponseWriter.WriteHeader(h.Status)
	if h.Body.Len() > 0 {
		h.ResponseWriter.Write(h.Body.Bytes()) // an error means that the caller has left
	}
	h.Body = bytes.Buffer{}
}

// Replace puts another body in place of the one that is held.
func (h *HeldResponse) Replace(body []byte) {
	h.Body = *bytes.NewBuffer(body)
	h.Header().Del("Etag")
	h.Header().Set("Content-Length", strconv.Itoa(h.Body.Len()))
}
