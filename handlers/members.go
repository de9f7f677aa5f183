package handlers

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/ratelimit"
)

// KeyHash is the SHA-256 of an integration key. A key itself is never kept.
type KeyHash [sha256.Size]byte

// HashKey returns the hash of a key.
func HashKey(key string) KeyHash { return sha256.Sum256([]byte(key)) }

// MembersAPI answers the members API of the spec. All fields are required.
type MembersAPI struct {
	// Path is what the paths of the API begin with, such as /integration.
	Path string

	// MaxBody bounds a request's body, in bytes.
	MaxBody int64

	// Keys holds the allowance of each key, Strangers that of each address to
	// send keys that are not valid.
	Keys, Strangers ratelimit.Limiter

	Logger *zap.Logger
}

// MembersSite is a site as the members API sees it.
type MembersSite struct {
	Members *members.Service

	// Integration returns the integration that a key opens.
	Integration func(KeyHash) (members.Integration, bool)
}

// Serve answers one request for a site, or for no site if that is nil. The
// address is the caller's.
func (h *MembersAPI) Serve(w http.ResponseWriter, r *http.Request, site *MembersSite, address netip.Addr) {
	if err := h.serve(w, r, site, address); err != nil {
		writeError(w, h.Logger, err)
	}
}

func (h *MembersAPI) serve(w http.ResponseWriter, r *http.Request, site *MembersSite, address netip.Addr) error {
	if site == nil {
		return errNoSite
	}
	integration, err := h.authenticate(r, site, address)
	if err != nil {
		return err
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.Path+"/members")
	if !ok || rest != "" && rest[0] != '/' {
		return errNoEndpoint
	}
	rest = strings.TrimPrefix(rest, "/")
	if rest == "" {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			return errNotAllowed
		}
		return h.create(w, r, site, integration)
	}
	identifier, err := url.PathUnescape(rest)
	if err != nil {
		return &members.InvalidError{Message: "The identifier in the path is not percent-encoded as it should be."}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return h.get(w, r, site, integration, identifier)
	case http.MethodPut:
		return h.update(w, r, site, integration, identifier)
	case http.MethodDelete:
		return h.delete(w, r, site, integration, identifier)
	}
	w.Header().Set("Allow", "GET, HEAD, PUT, DELETE")
	return errNotAllowed
}

// authenticate finds the integration of the request's key, and takes a request
// from the key's allowance.
func (h *MembersAPI) authenticate(r *http.Request, site *MembersSite, address netip.Addr) (members.Integration, error) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		hash := HashKey(strings.TrimSpace(key))
		if integration, ok := site.Integration(hash); ok {
			if wait := h.Keys.Take(r.Context(), ratelimit.Key(hash[:16])); wait > 0 {
				return members.Integration{}, &tooManyError{wait}
			}
			return integration, nil
		}
	}
	if wait := h.Strangers.Take(r.Context(), ratelimit.AddrKey(address)); wait > 0 {
		return members.Integration{}, &tooManyError{wait}
	}
	return members.Integration{}, errUnauthorized
}

func (h *MembersAPI) get(w http.ResponseWriter, r *http.Request, site *MembersSite, i members.Integration, identifier string) error {
	m, err := site.Members.Get(r.Context(), i, identifier)
	if err != nil {
		return err
	}
	writeMember(w, "Member retrieved successfully.", members.Result{Member: m})
	return nil
}

func (h *MembersAPI) create(w http.ResponseWriter, r *http.Request, site *MembersSite, i members.Integration) error {
	fields, err := h.fields(w, r)
	if err != nil {
		return err
	}
	result, err := site.Members.Create(r.Context(), i, fields)
	if err != nil {
		return err
	}
	writeMember(w, "Member created successfully.", result)
	return nil
}

func (h *MembersAPI) update(w http.ResponseWriter, r *http.Request, site *MembersSite, i members.Integration, identifier string) error {
	fields, err := h.fields(w, r)
	if err != nil {
		return err
	}
	result, err := site.Members.Update(r.Context(), i, identifier, fields, ifMatch(r.Header.Values("If-Match")))
	if err != nil {
		return err
	}
	writeMember(w, "Member updated successfully.", result)
	return nil
}

func (h *MembersAPI) delete(w http.ResponseWriter, r *http.Request, site *MembersSite, i members.Integration, identifier string) error {
	result, err := site.Members.Delete(r.Context(), i, identifier)
	if err != nil {
		return err
	}
	markQueued(w, result)
	writeEnvelope(w, http.StatusOK, envelope{Success: true, Data: []string{}, Message: "Member deleted successfully."})
	return nil
}

func writeMember(w http.ResponseWriter, message string, result members.Result) {
	markQueued(w, result)
	w.Header().Set("ETag", etagOf(result.Member))
	writeEnvelope(w, http.StatusOK, envelope{Success: true, Data: recordOf(result.Member), Message: message})
}

// markQueued tells a caller who wants to know that the platform does not have
// the write yet.
func markQueued(w http.ResponseWriter, result members.Result) {
	if result.Queued {
		w.Header().Set("Lychgate-Sync", "queued")
	}
}

// ifMatch returns whether a member is in one of the states that If-Match (RFC
// 9110, section 13.1.1) names, or nil if it names none.
func ifMatch(values []string) func(memberstore.Member) bool {
	if len(values) == 0 {
		return nil
	}
	return func(m memberstore.Member) bool {
		for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || tag == etagOf(m) {
				return true
			}
		}
		return false
	}
}

// fields reads the body of a create or an update.
func (h *MembersAPI) fields(w http.ResponseWriter, r *http.Request) (members.Fields, error) {
	if contentType := r.Header.Get("Content-Type"); contentType != "" {
		mediaType, _, err := mime.ParseMediaType(contentType)
		if err != nil || mediaType != "application/json" {
			return members.Fields{}, &members.InvalidError{Message: "The Content-Type must be application/json."}
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return members.Fields{}, errTooLarge
	}
	if err != nil {
		return members.Fields{}, &members.InvalidError{Message: "The request's body could not be read."}
	}
	return parseFields(body)
}

// parseFields reads the fields of a member from JSON. Fields that are not known
// are ignored.
func parseFields(body []byte) (f members.Fields, err error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return f, &members.InvalidError{Message: "The body must be a JSON object."}
	}
	var newsletters *[]struct {
		ID     *string `json:"id"`
		Status *string `json:"status"`
	}
	for _, field := range []struct {
		name, kind string
		into       any
	}{
		{"email", "a string", &f.Email},
		{"name", "a string", &f.Name},
		{"is_subscribed", "true or false", &f.Subscribed},
		{"newsletters", "an array of objects with an id and a status, both strings", &newsletters},
		{"note", "a string; leave it out to set none", &f.Note},
		{"labels", "an array of strings", &f.Labels},
		{"tier_id", "a string or null", &f.TierID},
		{"member_id", "a string", &f.MemberID},
	} {
		value, there := object[field.name]
		if !there {
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
	if newsletters != nil {
		list := []memberstore.Newsletter{}
		for _, n := range *newsletters {
			var plain memberstore.Newsletter
			if n.ID != nil {
				plain.ID = *n.ID
			}
			if n.Status != nil {
				plain.Status = *n.Status
			}
			list = append(list, plain)
		}
		f.Newsletters = &list
	}
	return f, nil
}
