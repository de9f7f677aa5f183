package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// responseTimeout is how long a client waits for a response before it asks another edge.
	responseTimeout = 5 * time.Second

	// maxUnderWay bounds the requests of a kind that are under way at once.
	maxUnderWay = 500
)

// request is what a client sends.
type request struct {
	method, path, body string
	header             []string // names and values in turn
}

// try is what became of a request at one edge.
type try struct {
	status int
	body   []byte

	// outcome is the status, and the code of the members API behind it if there is one; or why
	// there is no response.
	outcome string
}

// failed reports whether a client should ask another edge.
func (t try) failed() bool { return t.status == 0 || t.status >= 500 }

// newClient makes one that keeps as many connections to each edge as are used at a time.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxUnderWay, IdleConnTimeout: time.Minute}}
}

// ask sends a request to an edge.
func ask(ctx context.Context, client *http.Client, base string, r request) try {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	sent, err := http.NewRequestWithContext(ctx, r.method, base+r.path, strings.NewReader(r.body))
	if err != nil {
		return try{outcome: err.Error()}
	}
	for pair := range slices.Chunk(r.header, 2) {
		sent.Header.Set(pair[0], pair[1])
	}
	response, err := client.Do(sent)
	if err != nil {
		return try{outcome: why(err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return try{outcome: why(err)}
	}
	return try{response.StatusCode, body, strconv.Itoa(response.StatusCode)}
}

// why is the outcome of a request without a response.
func why(err error) string {
	var broken net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &broken) && broken.Timeout():
		return "no response in 5 s"
	}
	return "connection lost"
}
