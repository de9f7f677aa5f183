// Package handlers turns HTTP requests into answers. It knows the wire formats
// of docs/openapi.yaml, and nothing of Caddy: what the edge knows about a request, such
// as the reader's address, is handed in.
package handlers

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
)

// InboxProvider answers inbox provider lookups
// (docs/inbox_provider.md). All fields are required.
type InboxProvider struct {
	Classifier *classifier.Classifier

	// Limiter holds the allowance of each reader.
	Limiter ratelimit.Limiter

	// RejectTo is where a rejected domain is redirected to, unless the caller
	// accepts JSON.
	RejectTo string

	// CacheControl is that of each answer. It is the same for all, however old the
	// answer is, so that nobody learns from it when a domain was first asked for.
	CacheControl string
}

// InboxResult says how a lookup ends.
type InboxResult uint8

// How lookups end.
const (
	InboxPreflight        InboxResult = iota // 204
	InboxMethodNotAllowed                    // 405
	InboxRefused                             // 429
	InboxRejected                            // 422, or 302 to RejectTo
	InboxAnswered                            // 200
	InboxAbandoned                           // the caller left before there was an answer
)

// InboxAnswer is what a lookup is answered with.
type InboxAnswer struct {
	Result InboxResult

	// Answer is the classifier's, if Result is InboxAnswered.
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

// Lookup finds the answer to a request. The reader's address decides whose
// allowance it counts against.
func (h *InboxProvider) Lookup(r *http.Request, reader netip.Addr) InboxAnswer {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		return InboxAnswer{Result: InboxPreflight}
	default:
		return InboxAnswer{Result: InboxMethodNotAllowed}
	}
	if wait := h.take(r, reader); wait > 0 {
		return InboxAnswer{Result: InboxRefused, wait: wait}
	}
	domain, err := domainOf(r.URL.RawQuery)
	if err != nil {
		answer := InboxAnswer{Result: InboxRejected, reason: err}
		if !acceptsJSON(r.Header.Values("Accept")) {
			answer.redirect = h.RejectTo
		}
		return answer
	}
	found, err := h.Classifier.Classify(r.Context(), domain, reader)
	if err != nil {
		return InboxAnswer{Result: InboxAbandoned}
	}
	return InboxAnswer{Result: InboxAnswered, Answer: found, cacheControl: h.CacheControl}
}

// Write writes the answer.
func (a *InboxAnswer) Write(w http.ResponseWriter) {
	switch a.Result {
	case InboxPreflight:
		preflight(w)
	case InboxMethodNotAllowed:
		methodNotAllowed(w)
	case InboxRefused:
		writeTooMany(w, a.wait)
	case InboxRejected:
		w.Header().Add("Vary", "Accept")
		if a.redirect != "" {
			redirect(w, a.redirect)
			return
		}
		writeValidationError(w, "domain", a.reason.Error())
	case InboxAnswered, InboxAbandoned:
		cacheControl := noStore
		if a.Result == InboxAnswered && !a.Failed {
			cacheControl = a.cacheControl
		}
		writeJSON(w, http.StatusOK, cacheControl, inboxBodies[a.Provider])
	}
}

// Allow takes one request from the reader's allowance. If there is none left
// it answers with 429 and returns false.
func (h *InboxProvider) Allow(w http.ResponseWriter, r *http.Request, reader netip.Addr) bool {
	wait := h.take(r, reader)
	if wait > 0 {
		writeTooMany(w, wait)
	}
	return wait == 0
}

func (h *InboxProvider) take(r *http.Request, reader netip.Addr) time.Duration {
	return h.Limiter.Take(r.Context(), ratelimit.AddrKey(reader))
}

// NoSite answers for a host that is no site's.
func NoSite(w http.ResponseWriter) {
	writeMessage(w, http.StatusNotFound, "There is no site at this address.")
}

// inboxBodies are the ten answers.
var inboxBodies = func() map[classifier.Provider][]byte {
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

// KeepFor returns the CacheControl of answers that browsers may keep for a time.
func KeepFor(ttl time.Duration) string {
	return "public, max-age=" + strconv.FormatInt(int64(ttl/time.Second), 10)
}
