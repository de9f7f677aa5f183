package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"sync"
)

// exchange is a request and its answer, a line of the file that e2e/openapi
// compares with docs/openapi.yaml.
type exchange struct {
	Method        string      `json:"method"`
	Target        string      `json:"target"`         // path and query, as they were sent
	RequestHeader http.Header `json:"request_header"` // without Authorization
	RequestBody   string      `json:"request_body"`
	Status        int         `json:"status"`
	Header        http.Header `json:"header"`
	Body          string      `json:"body"`
}

// exchangesFile is where exchanges go, nil if they are not wanted. It stays
// open as long as the tests run.
var exchangesFile = sync.OnceValues(func() (*os.File, error) {
	name := os.Getenv("LYCHGATE_TEST_EXCHANGES")
	if name == "" {
		return nil, nil
	}
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
})

// recorder sends requests, and appends each that was answered to the file that
// LYCHGATE_TEST_EXCHANGES names.
type recorder struct{ transport }

// transport is what [http.Client] uses of one.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	file, err := exchangesFile()
	if err != nil {
		answer.Body.Close()
		return nil, err
	}
	if file == nil {
		return answer, nil
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err // the edge was killed in the middle
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	var sent []byte
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	header := request.Header.Clone()
	header.Del("Authorization")
	line, err := json.Marshal(exchange{
		Method: request.Method, Target: request.URL.RequestURI(), RequestHeader: header, RequestBody: string(sent),
		Status: answer.StatusCode, Header: answer.Header, Body: string(text),
	})
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	return answer, nil
}
