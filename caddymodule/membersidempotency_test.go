package caddymodule_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/members"
)

// A CRM that repeats a request gets the same answer, and the request is done
// once.
func TestMembersIdempotencyKey(t *testing.T) {
	config := membersConfig(sqliteStore(t), "none")
	e := startEdge(t, nil, strings.Replace(config, "members_api {", "handle /metrics {\nmetrics\n}\nmembers_api {", 1))
	first := e.call(formKey, "POST", "", `{"email":"a@example.com"}`, "Idempotency-Key", "k1")
	if first.Status != 200 || first.Header["Etag"] == "" {
		t.Fatal(first)
	}
	e.call(formKey, "PUT", "/a@example.com", `{"name":"changed since"}`)
	if diff := cmp.Diff(first, e.call(formKey, "POST", "", `{"email":"a@example.com"}`, "Idempotency-Key", "k1")); diff != "" {
		t.Errorf("again: %s", diff)
	}
	other := failed("The Idempotency-Key was used for another request.")
	for _, got := range []response{
		e.call(formKey, "POST", "", `{"email":"b@example.com"}`, "Idempotency-Key", "k1"),
		e.call(formKey, "DELETE", "/a@example.com", "", "Idempotency-Key", "k1"),
	} {
		if diff := cmp.Diff(other, got); diff != "" {
			t.Error(diff)
		}
	}
	if got := e.call(strictKey, "POST", "", `{"email":"b@example.com","member_id":"1"}`, "Idempotency-Key", "k1"); got.Status != 200 || !strings.Contains(got.Body, "b@example.com") {
		t.Errorf("another integration's: %v", got)
	}
	// What failed was not done, so it can be repeated.
	for _, want := range []string{"The email is already taken.", "Member created successfully."} {
		if got := e.call(formKey, "POST", "", `{"email":"b@example.com"}`, "Idempotency-Key", "k2"); !strings.Contains(got.Body, want) {
			t.Errorf("%v, want %s", got, want)
		}
		e.call(formKey, "DELETE", "/b@example.com", "")
	}
	gone := e.call(formKey, "DELETE", "/a@example.com", "", "Idempotency-Key", "k3")
	if diff := cmp.Diff(gone, e.call(formKey, "DELETE", "/a@example.com", "", "Idempotency-Key", "k3")); diff != "" || gone.Status != 200 {
		t.Errorf("delete: %v, %s", gone, diff)
	}
	for _, operation := range []string{"create", "delete"} {
		if got := e.metric(`lychgate_members_requests_total{operation="` + operation + `",outcome="replayed",site="daily"}`); got != "1" {
			t.Errorf("%s answers of %s were counted as repeated, want 1", got, operation)
		}
	}
	if got := e.call(formKey, "POST", "", `{"email":"c@example.com"}`, "Idempotency-Key", strings.Repeat("k", 256)); got.Body != failed("The Idempotency-Key has more than 255 characters.").Body {
		t.Errorf("long: %v", got)
	}
	if got := e.call(formKey, "POST", "", `{"email":"c@example.com"}`, "Idempotency-Key", "\xff\xfe"); got.Body != failed("The Idempotency-Key is not UTF-8.").Body {
		t.Errorf("not UTF-8: %v", got)
	}
}

// A large record is not kept for each Idempotency-Key, so that a caller cannot fill
// the disk. The request is not done twice all the same.
func TestMembersIdempotencyKeyOfLargeRecords(t *testing.T) {
	source := sqliteStore(t)
	e := startEdge(t, nil, membersConfig(source, "none"))
	note := strings.Repeat("n", 1990)
	body := `{"member_id":"1","email":"a@example.com","note":"` + note + `"}`
	first := e.call(crmKey, "POST", "", body, "Idempotency-Key", "k1")
	if first.Status != 200 || len(first.Body) < 2048 {
		t.Fatal(first)
	}
	if diff := cmp.Diff(first, e.call(crmKey, "POST", "", body, "Idempotency-Key", "k1")); diff != "" {
		t.Errorf("again: %s", diff)
	}
	put := e.call(crmKey, "PUT", "/1", `{"email":"b@example.com"}`, "Idempotency-Key", "k2")
	if diff := cmp.Diff(put, e.call(crmKey, "PUT", "/1", `{"email":"b@example.com"}`, "Idempotency-Key", "k2")); diff != "" {
		t.Errorf("an update again: %s", diff)
	}
	// Where the record was changed meanwhile, the answer has it as it is now.
	e.call(crmKey, "PUT", "/1", `{"name":"A"}`)
	got := e.call(crmKey, "POST", "", body, "Idempotency-Key", "k1")
	if !strings.Contains(got.Body, `"name":"A"`) || !strings.Contains(got.Body, `"member_id":"1"`) || !strings.Contains(got.Body, "Member created successfully.") {
		t.Errorf("after a change: %v", got)
	}
	e.call(crmKey, "DELETE", "/1", "")
	if diff := cmp.Diff(failed("The request was done, and the member was deleted since."), e.call(crmKey, "POST", "", body, "Idempotency-Key", "k1")); diff != "" {
		t.Errorf("after it was deleted: %s", diff)
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(source, "sqlite "))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	id := strings.Repeat("\u2028", 191) // escaped, it takes six bytes
	long := fmt.Sprintf(`{"member_id":"%s","email":"long@example.com","note":"%s"}`, id, strings.Repeat("n", 700))
	if got := e.call(crmKey, "POST", "", long, "Idempotency-Key", strings.Repeat("k", 255)); got.Status != 200 {
		t.Error(got)
	}
	var kept int
	if err := db.QueryRow("SELECT max(length(key) + length(request_hash) + length(guid) + length(header) + length(body)) FROM idempotency").Scan(&kept); err != nil || kept > 4000 {
		t.Errorf("%d bytes are kept of a request, %v", kept, err)
	}
}

// A create that was cut off by a crash after it was done is not done again, and
// not refused because of itself.
func TestMembersIdempotencyKeyAfterACrash(t *testing.T) {
	source := sqliteStore(t)
	e := startEdge(t, nil, membersConfig(source, "none"))
	store := openStore(t, source)
	made := e.call(formKey, "POST", "", `{"email":"made@example.com"}`)
	e.call(formKey, "POST", "", `{"email":"again@example.com"}`)
	unknown := failed("It is not known whether the request with this Idempotency-Key was done, because it was cut off. Read the member, and send what is to be changed with another key.")
	for _, test := range []struct {
		name, method, path, body string
		want                     response
	}{
		{"a create that was done", "POST", "", `{"email":"made@example.com"}`, made},
		{"a delete of nobody", "DELETE", "/gone@example.com", "", enveloped(200, `{"success":true,"data":[],"message":"Member deleted successfully."}`)},
		{"a delete of one who was made since", "DELETE", "/again@example.com", "", unknown},
		{"an update", "PUT", "/made@example.com", `{"name":"x"}`, unknown},
	} {
		hash := sha256.Sum256([]byte(test.method + " " + strings.TrimPrefix(test.path, "/") + "\n" + test.body))
		_, err := store.BeginRequest(t.Context(), members.Request{
			Site: "daily", Integration: "form", Key: test.name, Hash: hex.EncodeToString(hash[:]), GUID: guid.FindString(made.Body),
		}, time.Now().Add(-2*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, e.call(formKey, test.method, test.path, test.body, "Idempotency-Key", test.name)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}
