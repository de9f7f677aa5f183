package exchange

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"sync"
)

// exchange is a request and its response, a line of the file that e2e/openapi
// compares with docs/openapi.yaml and docs/admin_openapi.yaml.
type exchange struct {
	Server        string      `json:"server"` // edgeServer or adminServer
	Method        string      `json:"method"`
	Target        string      `json:"target"`         // path and query, as they were sent
	RequestHeader http.Header `json:"request_header"` // without Authorization
	RequestBody   string      `json:"request_body"`
	Status        int         `json:"status"`
	Header        http.Header `json:"header"`
	Body          string      `json:"body"`
}

// Servers of a Caddy, each with a document of its own.
const (
	edgeServer  = "edge"
	adminServer = "admin"
)

// maxExchange bounds the body of a request that is recorded, in bytes. Larger ones are
// refused, so they are not compared.
const maxExchange = 1 << 20

// exchangesFile is where exchanges go, nil if they are not wanted. It stays
// open as long as the tests run.
var exchangesFile = sync.OnceValues(func() (*os.File, error) {
	name := os.Getenv("LYCHGATE_TEST_EXCHANGES")
	if name == "" {
		return nil, nil
	}
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
})

// Recorder sends requests, and appends each that was answered to the file that
// LYCHGATE_TEST_EXCHANGES names.
type Recorder struct{ Transport }

// AdminRecorder is a recorder for Caddy's admin API.
type AdminRecorder struct{ Transport }

// Transport is what [http.Client] uses of one.
type Transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// RoundTrip is that of the transport.
func (r Recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	return record(edgeServer, r.Transport, request)
}

// RoundTrip is that of the transport.
func (r AdminRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	return record(adminServer, r.Transport, request)
}

func record(server string, over http.RoundTripper, request *http.Request) (*http.Response, error) {
	response, err := over.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	file, err := exchangesFile()
	if err != nil {
		response.Body.Close()
		return nil, err
	}
	if file == nil {
		return response, nil
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err // the edge was killed in the middle
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	var sent []byte
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return nil, err
		}
		if len(sent) > maxExchange {
			sent = nil
		}
	}
	header := request.Header.Clone()
	header.Del("Authorization")
	line, err := json.Marshal(exchange{
		Server: server, Method: request.Method, Target: request.URL.RequestURI(), RequestHeader: header, RequestBody: string(sent),
		Status: response.StatusCode, Header: response.Header, Body: string(text),
	})
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	return response, nil
}
