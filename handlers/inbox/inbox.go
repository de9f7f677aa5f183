// Package inbox answers which provider of mail stands behind an email address
// (docs/inbox_provider.md).
package inbox

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
)

// ButtonPath is where the inbox button's script is, relative to the lookup's folder.
const ButtonPath = "/lychgate/inbox-button.js"

// Provider answers lookups. All fields are required.
type Provider struct {
	Classifier *classifier.Classifier

	// Limiter holds the allowance of each reader.
	Limiter ratelimit.Limiter

	// RejectTo is where a rejected domain is redirected to, unless the caller
	// accepts JSON.
	RejectTo string

	// CacheControl is that of each response. It is the same for all, however old the
	// answer is, so that nobody learns from it when a domain was first asked for.
	CacheControl string
}

// Result says how a lookup ends.
type Result uint8

// How lookups end.
const (
	Preflight        Result = iota // 204
	MethodNotAllowed               // 405
	Refused                        // 429
	Rejected                       // 422, or 302 to RejectTo
	Answered                       // 200
	Abandoned                      // the caller left before there was a response
)

// Response is what a lookup is answered with.
type Response struct {
	Result Result

	// Answer is the classifier's, if Result is Answered.
	classifier.Answer

	wait         time.Duration // until the next request is allowed
	reason       error         // of a rejection
	redirect     string        // where to, if the caller does not accept JSON
	cacheControl string
}

// What is wrong with the query, before the domain in it is looked at.
const (
	errDomainMissing classifier.DomainError = "The domain is missing: send the part of an email address after the at-sign as ?domain=example.com."
	errDomainDoubled classifier.DomainError = "The domain is given more than once."
	errDomainEscape  classifier.DomainError = "The domain has a percent sign that is not followed by two hexadecimal digits."
)

// Lookup finds the response to a request. The reader's address decides whose
// allowance it counts against.
func (h *Provider) Lookup(r *http.Request, reader netip.Addr) Response {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		return Response{Result: Preflight}
	default:
		return Response{Result: MethodNotAllowed}
	}
	if wait := h.take(r, reader); wait > 0 {
		return Response{Result: Refused, wait: wait}
	}
	domain, err := domainOf(r.URL.RawQuery)
	if err != nil {
		response := Response{Result: Rejected, reason: err}
		if !acceptsJSON(r.Header.Values("Accept")) {
			response.redirect = h.RejectTo
		}
		return response
	}
	found, err := h.Classifier.Classify(r.Context(), domain, reader)
	if err != nil {
		return Response{Result: Abandoned}
	}
	return Response{Result: Answered, Answer: found, cacheControl: h.CacheControl}
}

// Write writes the response.
func (a *Response) Write(w http.ResponseWriter) {
	switch a.Result {
	case Preflight:
		api.Preflight(w)
	case MethodNotAllowed:
		api.NotReading(w)
	case Refused:
		tooMany(w, a.wait)
	case Rejected:
		w.Header().Add("Vary", "Accept")
		if a.redirect != "" {
			redirect(w, a.redirect)
			return
		}
		api.WritePublicFailure(w, http.StatusUnprocessableEntity, "domain", a.reason.Error())
	case Answered, Abandoned:
		cacheControl := "no-store"
		if a.Result == Answered && !a.Failed {
			cacheControl = a.cacheControl
		}
		api.WritePublic(w, cacheControl, bodies[a.Provider])
	}
}

// Allow takes one request from the reader's allowance. If there is none left
// it answers with 429 and returns false.
func (h *Provider) Allow(w http.ResponseWriter, r *http.Request, reader netip.Addr) bool {
	wait := h.take(r, reader)
	if wait > 0 {
		tooMany(w, wait)
	}
	return wait == 0
}

func (h *Provider) take(r *http.Request, reader netip.Addr) time.Duration {
	return h.Limiter.Take(r.Context(), ratelimit.AddrKey(reader))
}

func tooMany(w http.ResponseWriter, wait time.Duration) {
	api.WritePublicError(w, api.RateLimited("requests", wait))
}

// redirect sends the caller elsewhere, for this once.
func redirect(w http.ResponseWriter, target string) {
	header := w.Header()
	api.AllowAnyOrigin(header)
	header.Set("Cache-Control", "no-store")
	header.Set("Location", target)
	w.WriteHeader(http.StatusFound)
}

// bodies are the ten responses.
var bodies = func() map[classifier.Provider][]byte {
	bodies := map[classifier.Provider][]byte{
		classifier.None: []byte(`{"provider":null}`),
	}
	for _, provider := range classifier.Providers() {
		bodies[provider] = []byte(`{"provider":"` + string(provider) + `"}`)
	}
	return bodies
}()

// domainOf finds the domain in a query string, and parses it.
func domainOf(query string) (string, error) {
	var domain string
	var found bool
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != "domain" {
			continue
		}
		if found {
			return "", errDomainDoubled
		}
		found = true
		var err error
		if domain, err = url.QueryUnescape(value); err != nil {
			return "", errDomainEscape
		}
	}
	if !found {
		return "", errDomainMissing
	}
	return classifier.ParseDomain(domain)
}

// KeepFor is the CacheControl of responses that browsers may keep for a time.
func KeepFor(ttl time.Duration) string {
	return "public, max-age=" + strconv.FormatInt(int64(ttl/time.Second), 10)
}
