// Package handlers turns HTTP requests into answers. It knows the wire formats
// of the spec, and nothing of Caddy: what the edge knows about a request, such
// as the reader's address, is handed in.
package handlers

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/ratelimit"
)

// InboxProvider answers inbox provider lookups (spec, "Inbox provider
// lookup"). All fields are required.
type InboxProvider struct {
	Classifier *classifier.Classifier

	// Limiter holds the allowance of each reader.
	Limiter ratelimit.Limiter

	// RejectTo is where a rejected domain is redirected to, unless the caller
	// accepts JSON.
	RejectTo string
}

// InboxResult says how a lookup ended.
type InboxResult uint8

// How lookups end.
const (
	InboxNone     InboxResult = iota // no lookup: a preflight, or a method that is not allowed
	InboxAnswered                    // 200
	InboxRejected                    // 422, or 302 to RejectTo
	InboxRefused                     // 429
)

// What is wrong with the query, before the domain in it is looked at.
const (
	errDomainMissing classifier.DomainError = "The domain is missing: send the part of an email address after the at-sign as ?domain=example.com."
	errDomainDoubled classifier.DomainError = "The domain is given more than once."
	errDomainEscape  classifier.DomainError = "The domain has a percent sign that is not followed by two hexadecimal digits."
)

// Lookup answers one request. The reader's address decides whose allowance it
// counts against. The classifier's answer is meaningful if the result is
// InboxAnswered.
func (h *InboxProvider) Lookup(w http.ResponseWriter, r *http.Request, reader netip.Addr) (InboxResult, classifier.Answer) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		preflight(w)
		return InboxNone, classifier.Answer{}
	default:
		methodNotAllowed(w)
		return InboxNone, classifier.Answer{}
	}
	if !h.Allow(w, r, reader) {
		return InboxRefused, classifier.Answer{}
	}
	domain, err := domainOf(r.URL.RawQuery)
	if err != nil {
		h.reject(w, r, err)
		return InboxRejected, classifier.Answer{}
	}
	answer, err := h.Classifier.Classify(r.Context(), domain)
	if err != nil {
		// The caller left, or a timeout further out has struck.
		answer = classifier.Answer{Source: classifier.FromDNS, Failed: true}
	}
	cacheControl := noStore
	if !answer.Failed {
		cacheControl = keepFor(answer.TTL)
	}
	writeJSON(w, http.StatusOK, cacheControl, inboxBodies[answer.Provider])
	return InboxAnswered, answer
}

// Allow takes one request from the reader's allowance. If there is none left
// it answers with 429 and returns false.
func (h *InboxProvider) Allow(w http.ResponseWriter, r *http.Request, reader netip.Addr) bool {
	wait := h.Limiter.Take(r.Context(), ratelimit.AddrKey(reader))
	if wait == 0 {
		return true
	}
	seconds := ratelimit.RetryAfter(wait)
	header := w.Header()
	header.Set("Retry-After", strconv.Itoa(seconds))
	header.Set("Access-Control-Expose-Headers", "Retry-After")
	writeMessage(w, http.StatusTooManyRequests, fmt.Sprintf("Too many requests. Try again in %d s.", seconds))
	return false
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

// reject answers for a domain that cannot be looked up.
func (h *InboxProvider) reject(w http.ResponseWriter, r *http.Request, reason error) {
	header := w.Header()
	header.Set("Vary", "Accept")
	if !acceptsJSON(r.Header.Values("Accept")) {
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Cache-Control", noStore)
		header.Set("Location", h.RejectTo)
		w.WriteHeader(http.StatusFound)
		return
	}
	writeValidationError(w, "domain", reason.Error())
}

const noStore = "no-store"

// keepFor returns the Cache-Control of an answer that stands for a while yet.
func keepFor(ttl time.Duration) string {
	const prefix = "public, max-age="
	value := append(make([]byte, 0, len(prefix)+20), prefix...)
	return string(strconv.AppendInt(value, int64(ttl/time.Second), 10))
}
