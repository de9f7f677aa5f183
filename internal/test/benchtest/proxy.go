package benchtest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Proxy stands between the edge and a publishing platform, and notes when the platform is
// busy with a response.
type Proxy struct {
	URL string

	server *httptest.Server
	mu     sync.Mutex
	calls  []call
}

// call is a request, from its arrival until all of its response is there.
type call struct{ from, to time.Time }

// NewProxy starts a proxy before a server at an address such as http://127.0.0.1:2368.
func NewProxy(address string) (*Proxy, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	p := new(Proxy)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.In.Host != p.server.Listener.Addr().String() {
				r.Out.Host = r.In.Host // at which the platform has no other to redirect to
			}
			for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				r.Out.Header[name] = r.In.Header[name]
			}
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 16},
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		response := httptest.NewRecorder() // the edge has nothing of it before its time is noted
		forward.ServeHTTP(response, r)
		p.mu.Lock()
		p.calls = append(p.calls, call{start, time.Now()})
		p.mu.Unlock()
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		w.Write(response.Body.Bytes())
	}))
	p.URL = p.server.URL
	return p, nil
}

// Busy sums the time between from and to in which the platform had a request, and counts
// these requests.
func (p *Proxy) Busy(from, to time.Time) (took time.Duration, requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.calls, func(a, b call) int { return a.from.Compare(b.from) })
	counted := from // what is before it
	for _, c := range p.calls {
		if c.to.Before(from) || c.from.After(to) {
			continue
		}
		requests++
		if c.from.Before(counted) {
			c.from = counted
		}
		if c.to.After(to) {
			c.to = to
		}
		if c.to.After(c.from) {
			took += c.to.Sub(c.from)
			counted = c.to
		}
	}
	return took, requests
}

// Close stops the proxy.
func (p *Proxy) Close() { p.server.Close() }
