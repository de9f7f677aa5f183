// Package members answers the members API (docs/members_api.md).
package members

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
)

// API answers the members API (docs/members_api.md). All fields are required.
type API struct {
	// Path is what the paths of the API begin with, such as /integration.
	Path string

	// MaxBody bounds a request's body, in bytes.
	MaxBody int64

	// Keys holds the rate limit of each key.
	Keys *ratelimit.PerKey

	// FailedKeys holds that of each address for keys that are not valid, Webhooks
	// that for webhook events that are not the platform's.
	FailedKeys, Webhooks *api.AuthLimiter

	Logger *zap.Logger
}

// Site is a site as the members API sees it.
type Site struct {
	Members *members.Service
	Inbound *inbound.Sync

	// Integration returns the integration that a key opens, or
	// members.ErrNotFound.
	Integration func(context.Context, members.KeyHash) (members.Integration, error)
}

// Serve answers one request for a site, or for no site if that is nil. The
// address is the caller's. Operations are get, create, update, delete, webhook and
// other.
func (h *API) Serve(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr) api.Served {
	served := api.Served{Operation: operationOf(r.Method), Outcome: api.Done}
	if _, isEvent := h.webhookToken(r); isEvent {
		served.Operation = "webhook"
	}
	answer, err := h.answer(w, r, site, address)
	if err != nil {
		served.Outcome = writeError(w, h.Logger, err)
		return served
	}
	switch {
	case answer.replayed:
		served.Outcome = api.Replayed
	case answer.Queued && served.Operation != "get":
		served.Outcome = api.Queued
	}
	answer.write(w)
	return served
}

func operationOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		return "delete"
	}
	return "other"
}

// Fail answers a request that could not even be served, because of err.
func (h *API) Fail(w http.ResponseWriter, err error) api.Served {
	return api.Served{Operation: "other", Outcome: writeError(w, h.Logger, err)}
}

// patience bounds a request: a store that hangs is not waited for any longer.
const patience = 10 * time.Second

func (h *API) answer(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr) (*memberAnswer, error) {
	if site == nil {
		return nil, api.ErrNoSite
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if token, ok := h.webhookToken(r); ok {
		return h.webhookEvent(ctx, w, r, site, address, token)
	}
	integration, err := h.authenticate(ctx, r, site, address)
	if err != nil {
		return nil, err
	}
	call, err := h.callOf(w, r, integration)
	if err != nil {
		return nil, err
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return call.run(ctx, site.Members)
	}
	return call.once(ctx, site.Members, key)
}

// memberCall is a request of the members API, read and checked as far as that
// goes without looking at members.
type memberCall struct {
	logger      *zap.Logger
	method      string
	identifier  string // empty for a create
	body        []byte
	match       func(members.Member) bool
	integration members.Integration
	guid        string // that a create is to give, or empty
}

// callOf reads a request.
func (h *API) callOf(w http.ResponseWriter, r *http.Request, integration members.Integration) (*memberCall, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.Path+"/members")
	if !ok || rest != "" && rest[0] != '/' {
		return nil, api.ErrNoEndpoint
	}
	rest = strings.TrimPrefix(rest, "/")
	allowed := []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}
	if rest == "" {
		allowed = []string{http.MethodPost}
	}
	if !slices.Contains(allowed, r.Method) {
		api.Allow(w.Header(), allowed...)
		return nil, api.ErrNotAllowed
	}
	identifier, err := url.PathUnescape(rest)
	if err != nil {
		return nil, &members.InvalidError{Message: "The identifier in the path is not percent-encoded as it should be."}
	}
	if len(identifier) > maxIdentifier || !utf8.ValidString(identifier) || strings.ContainsRune(identifier, 0) {
		return nil, members.ErrNotFound // nobody is called that, and PostgreSQL cannot be asked
	}
	call := &memberCall{
		logger: h.Logger, method: r.Method, identifier: identifier, integration: integration, match: ifMatch(r.Header.Values("If-Match")),
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		call.body, err = h.readBody(w, r)
	}
	return call, err
}

const (
	memberCreated = "Member created successfully."
	memberUpdated = "Member updated successfully."
)

// run does what the call asks for.
func (c *memberCall) run(ctx context.Context, service *members.Service) (*memberAnswer, error) {
	switch c.method {
	case http.MethodPost:
		fields, err := parseFields(c.body, c.integration.Mode == members.CustomIDMode)
		if err != nil {
			return nil, err
		}
		fields.GUID = c.guid
		return answerWith(memberCreated)(service.Create(ctx, c.integration, fields))
	case http.MethodPut:
		fields, err := parseFields(c.body, false)
		if err != nil {
			return nil, err
		}
		return answerWith(memberUpdated)(service.Update(ctx, c.integration, c.identifier, fields, c.match))
	case http.MethodDelete:
		result, err := service.Delete(ctx, c.integration, c.identifier, c.match)
		if err != nil {
			return nil, err
		}
		return deleted(result.Queued), nil
	}
	return answerWith("Member retrieved successfully.")(service.Get(ctx, c.integration, c.identifier))
}

// once does what the call asks for, unless it was done before under the same
// Idempotency-Key: then the answer is that of the first time. What failed was
// not done, so it is tried again.
func (c *memberCall) once(ctx context.Context, service *members.Service, key string) (*memberAnswer, error) {
	if len(key) > api.MaxIdempotencyKey {
		return nil, &members.InvalidError{Message: "The Idempotency-Key has more than 255 characters."}
	}
	hash := sha256.Sum256(slices.Concat([]byte(c.method+" "+c.identifier+"\n"), c.body))
	request := members.Request{Integration: c.integration.Name, Key: key, Hash: hex.EncodeToString(hash[:]), Owner: rand.Text()}
	if c.method == http.MethodPost {
		request.GUID = members.NewGUID()
	}
	begun, err := service.Begin(ctx, request)
	if err != nil {
		return nil, err
	}
	if begun.Answer != nil {
		answer, err := c.replay(ctx, service, begun.Answer)
		if err == nil {
			answer.replayed = true
		}
		return answer, err
	}
	held, release := service.Hold(ctx, request)
	answer, err := c.attempt(held, service, begun)
	release()
	// The caller may have left, but will come back with the same key.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err != nil {
		switch {
		case errors.Is(err, errDeletedSince): // which a repeat is told too
			err = errors.Join(err, service.End(ctx, request, keep(&memberAnswer{GUID: begun.GUID})))
		case wasNotDone(err) && !begun.IsDone:
			err = errors.Join(err, service.End(ctx, request, nil))
		}
		return nil, err // of what is not known to have failed, the request stays begun
	}
	if err := service.End(ctx, request, keep(answer)); err != nil {
		c.logger.Error("an answer could not be kept for its Idempotency-Key", zap.Error(err)) // but what was asked for is done
	}
	return answer, nil
}

const (
	// maxIdentifier bounds an identifier, in bytes: 191 characters of up to four
	// bytes each.
	maxIdentifier = 4 * 191

	// maxKeptBody bounds the body that is kept for an Idempotency-Key, in bytes.
	maxKeptBody = 2 << 10
)

// keep returns what is kept of an answer: its body too, unless that is large.
func keep(answer *memberAnswer) *members.Answer {
	kept := &members.Answer{Header: api.JSON(answer)}
	if len(answer.Body) <= maxKeptBody {
		kept.Body = answer.Body
	}
	return kept
}

// replay returns an answer once more. Where its body was too large to be kept, it
// has the member's record as it is now.
func (c *memberCall) replay(ctx context.Context, service *members.Service, kept *members.Answer) (*memberAnswer, error) {
	answer := &memberAnswer{Body: kept.Body}
	if err := json.Unmarshal([]byte(kept.Header), answer); err != nil || answer.Body != "" {
		return answer, err
	}
	return c.asItIsNow(ctx, service, answer)
}

// asItIsNow returns the answer to a create or an update that was done, with the member's
// record as it is now.
func (c *memberCall) asItIsNow(ctx context.Context, service *members.Service, answer *memberAnswer) (*memberAnswer, error) {
	result, err := service.GetByGUID(ctx, answer.GUID)
	if isDeleted(err) {
		return nil, errDeletedSince
	}
	result.Member.MemberID = answer.MemberID
	message := memberUpdated
	if c.method == http.MethodPost {
		message = memberCreated
	}
	return answerWith(message)(result, err)
}

// attempt does what the call asks for, unless that was done before and not answered. A
// create is known by its GUID.
func (c *memberCall) attempt(ctx context.Context, service *members.Service, begun members.Begun) (*memberAnswer, error) {
	c.guid = begun.GUID
	switch {
	case !begun.IsDone:
		return c.run(ctx, service)
	case c.method == http.MethodPost:
		if _, err := service.GetByGUID(ctx, begun.GUID); isDeleted(err) {
			return nil, errDeletedSince
		}
		return c.run(ctx, service) // which finds what it made
	case c.method == http.MethodPut:
		answer := &memberAnswer{GUID: begun.GUID}
		if c.integration.Mode == members.CustomIDMode {
			answer.MemberID = c.identifier
		}
		return c.asItIsNow(ctx, service, answer)
	}
	queued, err := service.IsPending(ctx, begun.GUID)
	if err != nil {
		return nil, err
	}
	return deleted(queued), nil
}

var errDeletedSince = &members.InvalidError{Message: "The request was done, and the member was deleted since.", Code: members.CodeDeletedSince}

// isDeleted reports whether an error is that a member was deleted, not refused.
func isDeleted(err error) bool {
	_, isRefused := errors.AsType[*members.RefusedError](err)
	return errors.Is(err, members.ErrNotFound) && !isRefused
}

func deleted(queued bool) *memberAnswer {
	return &memberAnswer{
		Queued: queued,
		Body:   api.JSON(envelope{Success: true, Data: []string{}, Message: "Member deleted successfully."}),
	}
}

// answerWith returns a function that turns the result of a call into its
// answer.
func answerWith(message string) func(members.Result, error) (*memberAnswer, error) {
	return func(result members.Result, err error) (*memberAnswer, error) {
		if err != nil {
			return nil, err
		}
		m := result.Member
		text := api.JSON(NewMemberRecord(m))
		return &memberAnswer{
			ETag: api.ETag(tag(text, m.UpdatedAt)), Queued: result.Queued, refused: result.Refused, GUID: m.GUID, MemberID: m.MemberID,
			Body: memberBody(text, message),
		}, nil
	}
}

// authenticate finds the integration of the request's key, and takes a request
// from the key's allowance.
func (h *API) authenticate(ctx context.Context, r *http.Request, site *Site, address netip.Addr) (members.Integration, error) {
	// An address that has tried too many keys has no further one looked at, or
	// guessing would go on at full speed.
	attempt, wait := h.FailedKeys.Begin(ctx, site.Members.Site, address)
	if wait > 0 {
		return members.Integration{}, api.RateLimited("wrong keys from this address", wait)
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		hash := members.HashKey(strings.TrimSpace(key))
		integration, err := site.Integration(ctx, hash)
		switch {
		case err == nil:
			attempt.Succeed()
			if wait := h.Keys.Take(ctx, ratelimit.Key(hash[:16]), ratelimit.Limit(integration.Limit)); wait > 0 {
				return members.Integration{}, api.RateLimited("requests", wait)
			}
			return integration, nil
		case !errors.Is(err, members.ErrNotFound):
			return members.Integration{}, err
		}
	}
	if wait := attempt.Fail(ctx); wait > 0 {
		return members.Integration{}, api.RateLimited("wrong keys from this address", wait)
	}
	return members.Integration{}, errUnauthorized
}

// ifMatch returns whether a member is in one of the states that If-Match (RFC
// 9110, section 13.1.1) names, or nil if it names none.
func ifMatch(values []string) func(members.Member) bool {
	if len(values) == 0 {
		return nil
	}
	return func(m members.Member) bool {
		want := tagOf(m) // once: there is room in a header for a million tags
		for _, value := range values {
			for tag := range strings.SplitSeq(value, ",") {
				if strings.TrimSpace(tag) == "*" || api.TagOf(tag) == want {
					return true
				}
			}
		}
		return false
	}
}

// readBody reads the body of a create or an update.
func (h *API) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if contentType := r.Header.Get("Content-Type"); contentType != "" {
		mediaType, _, err := mime.ParseMediaType(contentType)
		if err != nil || mediaType != "application/json" {
			return nil, &members.InvalidError{Message: "The Content-Type must be application/json."}
		}
	}
	body, err := api.ReadBody(w, r, h.MaxBody)
	if err != nil && !errors.Is(err, api.ErrTooLarge) {
		return nil, &members.InvalidError{Message: "The request's body could not be read."}
	}
	return body, err
}

// parseFields reads the fields of a member from JSON. Fields that are not known
// are ignored, and so is member_id where it does not identify a new member.
func parseFields(body []byte, memberID bool) (f members.Fields, err error) {
	var object map[string]json.RawMessage
	err = api.Unmarshal(body, &object)
	if errors.Is(err, api.ErrNotUnicode) {
		return f, &members.InvalidError{Message: "The body must be JSON in UTF-8, without escapes of half a character."}
	}
	if len(body) == 0 {
		return f, &members.InvalidError{Message: "The body must be a JSON object. It is empty."}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return f, &members.InvalidError{Message: fmt.Sprintf("The body must be a JSON object. It is not valid JSON, from byte %d of %d on.", syntax.Offset, len(body))}
	}
	if err != nil || object == nil {
		return f, &members.InvalidError{Message: "The body must be a JSON object."}
	}
	for _, field := range []struct {
		name, kind string
		into       any
	}{
		{"email", "a string", &f.Email},
		{"name", "a string", &f.Name},
		{"is_subscribed", "true or false", &f.Subscribed},
		{"newsletters", "an array of objects with an id and a status, both strings", &f.Newsletters},
		{"note", "a string; leave it out to set none", &f.Note},
		{"labels", "an array of strings", &f.Labels},
		{"tier_id", "a string or null", &f.TierID},
		{"member_id", "a string", &f.MemberID},
	} {
		value, there := object[field.name]
		if !there || field.name == "member_id" && !memberID {
			continue
		}
		if string(value) == "null" {
			if field.name == "tier_id" {
				f.TierID = new(*string)
				continue
			}
			err = errors.New("null")
		} else {
			err = json.Unmarshal(value, field.into)
		}
		if err != nil {
			return members.Fields{}, &members.InvalidError{Message: "The " + field.name + " must be " + field.kind + "."}
		}
	}
	return f, nil
}
