package members

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// This file holds what every response of the members API looks like
// (docs/members_api.md#responses).

// envelope is the body of every response.
type envelope struct {
	Success bool   `json:"success"`
	Data    any    `json:"data,omitempty"`
	Message string `json:"message"`

	// Code is of failures only.
	Code members.Code `json:"code,omitempty"`
}

// codes are those of failures that are not a *members.InvalidError.
var codes = map[int]members.Code{
	http.StatusUnauthorized:          "unauthorized",
	http.StatusNotFound:              "no_endpoint",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusGone:                  "gone",
	http.StatusPreconditionFailed:    "changed",
	http.StatusRequestEntityTooLarge: "too_large",
	http.StatusTooManyRequests:       "too_many_requests",
	http.StatusInternalServerError:   "internal_error",
	http.StatusServiceUnavailable:    "busy",
}

func codeOf(f api.Failure, err error) members.Code {
	if invalid, ok := errors.AsType[*members.InvalidError](err); ok {
		return cmp.Or(invalid.Code, members.CodeInvalid)
	}
	if f.Status == http.StatusNotFound && f.Outcome == api.NotFound {
		return "not_found" // the member is
	}
	return codes[f.Status]
}

// MemberRecord is a member as the API shows it, with the fields in their documented
// order (docs/members_api.md).
type MemberRecord struct {
	GUID       string   `json:"guid"`
	Email      string   `json:"email"`
	Name       string   `json:"name"`
	Subscribed bool     `json:"is_subscribed"`
	Note       string   `json:"note"`
	Labels     []string `json:"labels"`
	TierID     *string  `json:"tier_id"`
	MemberID   *string  `json:"member_id"`
	Status     string   `json:"status"`
	CreatedAt  string   `json:"created_at"`
	UpdatedAt  string   `json:"updated_at"`
}

// NewMemberRecord has labels that are never null, and times to the second.
func NewMemberRecord(m members.Member) MemberRecord {
	r := MemberRecord{
		GUID: m.GUID, Email: m.Email, Name: m.Name, Subscribed: m.Subscribed, Note: m.Note, Labels: m.Labels,
		TierID: m.TierID, Status: m.Status, MemberID: api.TextOrNull(m.MemberID), CreatedAt: api.Time(m.CreatedAt), UpdatedAt: api.Time(m.UpdatedAt),
	}
	if r.Labels == nil {
		r.Labels = []string{}
	}
	return r
}

// tagOf names what a caller sees of a member, for If-Match, and beside that when
// it last changed, to the millisecond: so it is another after each write. It is no
// count of writes: one that the platform refused, and that was undone, leaves it as
// it was.
func tagOf(m members.Member) string { return tag(api.JSON(NewMemberRecord(m)), m.UpdatedAt) }

func tag(record string, updated time.Time) string {
	sum := sha256.Sum256(strconv.AppendInt([]byte(record), updated.UnixMilli(), 10))
	return hex.EncodeToString(sum[:12])
}

// memberResponse is the response to a request that was done. Its JSON is what is
// kept of it beside the body.
type memberResponse struct {
	ETag   string `json:"etag,omitempty"`
	Queued bool   `json:"queued,omitempty"` // the platform does not have the write yet
	Body   string `json:"-"`

	refused  string   // why the platform refused what was queued, for good
	unknown  []string // fields of the request
	accepted bool     // 202: what was sent is looked at later
	replayed bool     // the response to an earlier request with this Idempotency-Key

	// GUID and MemberID are the member's, if the body has a record.
	GUID     string `json:"guid,omitempty"`
	MemberID string `json:"member_id,omitempty"`
}

func (a *memberResponse) write(w http.ResponseWriter) {
	header := w.Header()
	if a.ETag != "" {
		header.Set("ETag", a.ETag)
	}
	switch {
	case a.refused != "":
		setRefused(header, a.refused)
	case a.Queued:
		header.Set("Lychgate-Sync", "queued")
	}
	if len(a.unknown) > 0 {
		var names []string
		for _, name := range a.unknown {
			names = append(names, strings.ReplaceAll(percentEncode(name, maxReason), ",", "%2C"))
		}
		header.Set("Lychgate-Ignored-Fields", cutAtName(strings.Join(names, ", ")))
	}
	status := http.StatusOK
	if a.accepted {
		status = http.StatusAccepted
	}
	api.Write(w, status, []byte(a.Body))
}

// cutAtName cuts a list of names so that it has maxReason bytes at most.
func cutAtName(list string) string {
	if len(list) <= maxReason {
		return list
	}
	return list[:max(strings.LastIndex(list[:maxReason], ", "), 0)]
}

// maxReason bounds the header Lychgate-Sync-Reason, in bytes.
const maxReason = 1000

// setRefused sets the headers that say that the platform refused a queued write for good.
// Proxies log headers, so a word with an at-sign, which may be an address, is left out.
func setRefused(header http.Header, reason string) {
	words := strings.Fields(reason)
	for i, word := range words {
		if strings.Contains(word, "@") {
			words[i] = "…"
		}
	}
	header.Set("Lychgate-Sync", "refused")
	header.Set("Lychgate-Sync-Reason", percentEncode(strings.Join(words, " "), maxReason))
}

// percentEncode encodes a text for a header: what is no printable ASCII, and percent
// signs, as RFC 3986 (section 2.1) has it, in UTF-8. It cuts at a character, at most bytes.
func percentEncode(text string, most int) string {
	var encoded strings.Builder
	for _, c := range text {
		piece := string(c)
		if c < ' ' || c > '~' || c == '%' {
			piece = "%" + strings.ReplaceAll(fmt.Sprintf("% X", piece), " ", "%")
		}
		if encoded.Len()+len(piece) > most {
			break
		}
		encoded.WriteString(piece)
	}
	return encoded.String()
}

// memberBody puts a member's record, which is JSON already, into the envelope.
func memberBody(record, message string) string {
	return `{"success":true,"data":` + record + `,"message":` + api.JSON(message) + `}`
}

var errUnauthorized = &api.Error{
	Status: http.StatusUnauthorized, Outcome: api.Unauthorized,
	Message: "The integration key is missing or not valid. Send Authorization: Bearer and the key.",
}

// writeError writes the response for an error, and returns its outcome.
func writeError(w http.ResponseWriter, logger *zap.Logger, err error) api.Outcome {
	f := api.FailureOf(err)
	if f.IsUnforeseen {
		logger.Error("members API request failed", zap.Error(err))
	}
	f.SetRetryAfter(w.Header())
	if errors.Is(err, errUnauthorized) {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if refused, ok := errors.AsType[*members.RefusedError](err); ok {
		setRefused(w.Header(), refused.Reason)
	}
	api.Write(w, f.Status, []byte(api.JSON(envelope{Message: f.Message, Code: codeOf(f, err)})))
	return f.Outcome
}

// wasNotDone reports whether an error says that what was asked for was not done.
func wasNotDone(err error) bool {
	outcome := api.FailureOf(err).Outcome
	return outcome == api.Rejected || outcome == api.NotFound
}
