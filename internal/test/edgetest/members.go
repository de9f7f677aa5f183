package edgetest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Keys of the integrations of [MembersSites].
const (
	FormKey   = "form-key-0123456789abcdef0123456789abcdef"
	CRMKey    = "crm-key-0123456789abcdef0123456789abcdef"
	OtherKey  = "other-site-key-0123456789abcdef0123456789"
	StrictKey = "strict-key-0123456789abcdef0123456789abcdef"
)

// SQLiteStore is the option store with a new file.
func SQLiteStore(t testing.TB) string {
	return "sqlite " + filepath.Join(t.TempDir(), "lychgate.db")
}

// Call sends a request of a CRM's.
func (e *Edge) Call(key, method, path, body string, header ...string) Response {
	e.T.Helper()
	header = append(header, "Authorization", "Bearer "+key)
	if body != "" {
		header = append(header, "Content-Type", "application/json")
	}
	r, err := e.SendBody(method, "/integration/members"+path, body, header...)
	if err != nil {
		e.T.Fatalf("e.sendBody: %v", err)
	}
	return r
}

// Write is call for what a Ghost that works is to have at once. On a loaded machine it may take longer
// than the 5 seconds that an edge waits. Then the write is queued, and write returns once Ghost has it,
// as if it had not been.
func (e *Edge) Write(key, method, path, body string, header ...string) Response {
	e.T.Helper()
	got := e.Call(key, method, path, body, header...)
	if got.Header["Lychgate-Sync"] != "queued" {
		e.AtOnce++
	}
	e.Sync(got, func(path string) (Response, error) { return e.Call(key, "GET", path, ""), nil })
	return got
}

// Sync waits until Ghost has a write that is queued, and removes Lychgate-Sync from its response. It
// returns what get then says of the member. A write that is not queued, or a delete, is returned as it is.
func (e *Edge) Sync(got Response, get func(path string) (Response, error)) (now Response) {
	e.T.Helper()
	if got.Header["Lychgate-Sync"] != "queued" {
		return got
	}
	delete(got.Header, "Lychgate-Sync")
	var record struct {
		Data struct {
			Email    string
			MemberID *string `json:"member_id"`
		}
	}
	if err := json.Unmarshal([]byte(got.Body), &record); err != nil || record.Data.Email == "" {
		return got
	}
	path := "/" + record.Data.Email
	if id := record.Data.MemberID; id != nil {
		path = "/" + *id
	}
	err := wait.Poll(func() string {
		var err error
		if now, err = get(path); err != nil || now.Header["Lychgate-Sync"] == "queued" {
			return fmt.Sprint("Ghost does not have it: ", now, err)
		}
		return ""
	})
	if err != nil {
		e.T.Errorf("%s: wait.Poll: %v", path, err)
	}
	if refused, ok := now.Header["Lychgate-Sync"]; ok {
		got.Header["Lychgate-Sync"] = refused
	}
	return now
}

// What differs from run to run in members.
var (
	GUID    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	tagForm = regexp.MustCompile(`[0-9a-f]{24}`)
	When    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

// Plain replaces what differs from run to run.
func Plain(r Response) Response {
	r.Body = When.ReplaceAllString(GUID.ReplaceAllString(r.Body, "GUID"), "TIME")
	if tag, ok := r.Header["Etag"]; ok {
		r.Header["Etag"] = tagForm.ReplaceAllString(tag, "TAG")
	}
	return r
}

// Failed is the response to a request that was refused with a message.
func Failed(message string) Response {
	text, _ := json.Marshal(message)
	code, isOther := failureCodes[message]
	if !isOther {
		code = "invalid"
	}
	return exchange.JSON(200, `{"success":false,"message":`+string(text)+`,"code":"`+code+`"}`)
}

// failureCodes are the codes of failures with a status of 200 that are not invalid.
var failureCodes = map[string]string{
	"The email is already taken.":                     "email_taken",
	"The member_id is already taken.":                 "member_id_taken",
	ToPlaceholder:                                     "placeholder",
	"One of the newsletters does not exist in Ghost.": "refused",
	"One of the newsletters is archived in Ghost.":    "refused",
	"The member is not known here, and the publishing platform does not answer. Try again later.": "platform_away",
	"The Idempotency-Key was used for another request.":                                           "key_reused",
	"The request was done, and the member was deleted since.":                                     "deleted_since",
}

// ToPlaceholder is why a placeholder cannot be subscribed.
const ToPlaceholder = "The email is a placeholder, which never gets mail: is_subscribed must be false, and no newsletter active."
