package membersapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// A CRM that repeats a request gets the same response, and the request is done
// once.
func TestMembersIdempotencyKey(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersSites{Store: edgetest.SQLiteStore(t), Platform: "none", Before: "handle /metrics {\n metrics\n}"}.Caddyfile())
	first := e.Call(edgetest.FormKey, "POST", "", `{"email":"a@example.com"}`, "Idempotency-Key", "k1")
	if first.Status != 200 || first.Header["Etag"] == "" {
		t.Fatalf("got %v, want status 200, an ETag", first)
	}
	e.Call(edgetest.FormKey, "PUT", "/a@example.com", `{"name":"changed since"}`)
	if diff := cmp.Diff(first, e.Call(edgetest.FormKey, "POST", "", `{"email":"a@example.com"}`, "Idempotency-Key", "k1")); diff != "" {
		t.Errorf("again: %s", diff)
	}
	other := edgetest.Failed("The Idempotency-Key was used for another request.")
	for _, got := range []edgetest.Response{
		e.Call(edgetest.FormKey, "POST", "", `{"email":"b@example.com"}`, "Idempotency-Key", "k1"),
		e.Call(edgetest.FormKey, "DELETE", "/a@example.com", "", "Idempotency-Key", "k1"),
	} {
		if diff := cmp.Diff(other, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	}
	if got := e.Call(edgetest.StrictKey, "POST", "", `{"email":"b@example.com","member_id":"1"}`, "Idempotency-Key", "k1"); got.Status != 200 || !strings.Contains(got.Body, "b@example.com") {
		t.Errorf("another integration's: %v", got)
	}
	// What failed was not done, so it can be repeated.
	for _, want := range []string{"The email is already taken.", "Member created successfully."} {
		if got := e.Call(edgetest.FormKey, "POST", "", `{"email":"b@example.com"}`, "Idempotency-Key", "k2"); !strings.Contains(got.Body, want) {
			t.Errorf("%v, want %s", got, want)
		}
		e.Call(edgetest.FormKey, "DELETE", "/b@example.com", "")
	}
	gone := e.Call(edgetest.FormKey, "DELETE", "/a@example.com", "", "Idempotency-Key", "k3")
	if diff := cmp.Diff(gone, e.Call(edgetest.FormKey, "DELETE", "/a@example.com", "", "Idempotency-Key", "k3")); diff != "" || gone.Status != 200 {
		t.Errorf("delete: %v, %s", gone, diff)
	}
	for _, operation := range []string{"create", "delete"} {
		if got := e.Metric(`lychgate_members_requests_total{operation="` + operation + `",outcome="replayed",site="daily"}`); got != "1" {
			t.Errorf("%s answers of %s were counted as repeated, want 1", got, operation)
		}
	}
	if got := e.Call(edgetest.FormKey, "POST", "", `{"email":"c@example.com"}`, "Idempotency-Key", strings.Repeat("k", 256)); got.Body != edgetest.Failed("The Idempotency-Key has more than 255 characters.").Body {
		t.Errorf("long: %v", got)
	}
	if got := e.Call(edgetest.FormKey, "POST", "", `{"email":"c@example.com"}`, "Idempotency-Key", "\xff\xfe"); got.Body != edgetest.Failed("The Idempotency-Key is not UTF-8.").Body {
		t.Errorf("not UTF-8: %v", got)
	}
}

// A large record is not kept for each Idempotency-Key, so that a caller cannot fill
// the disk. The request is not done twice all the same.
func TestMembersIdempotencyKeyOfLargeRecords(t *testing.T) {
	source := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(source, "none"))
	note := strings.Repeat("n", 1990)
	body := `{"member_id":"1","email":"a@example.com","note":"` + note + `"}`
	first := e.Call(edgetest.CRMKey, "POST", "", body, "Idempotency-Key", "k1")
	if first.Status != 200 || len(first.Body) < 2048 {
		t.Fatalf("got %v, want status 200, a body of at least 2048 bytes", first)
	}
	if diff := cmp.Diff(first, e.Call(edgetest.CRMKey, "POST", "", body, "Idempotency-Key", "k1")); diff != "" {
		t.Errorf("again: %s", diff)
	}
	put := e.Call(edgetest.CRMKey, "PUT", "/1", `{"email":"b@example.com"}`, "Idempotency-Key", "k2")
	if diff := cmp.Diff(put, e.Call(edgetest.CRMKey, "PUT", "/1", `{"email":"b@example.com"}`, "Idempotency-Key", "k2")); diff != "" {
		t.Errorf("an update again: %s", diff)
	}
	// Where the record was changed meanwhile, the response has it as it is now.
	e.Call(edgetest.CRMKey, "PUT", "/1", `{"name":"A"}`)
	got := e.Call(edgetest.CRMKey, "POST", "", body, "Idempotency-Key", "k1")
	if !strings.Contains(got.Body, `"name":"A"`) || !strings.Contains(got.Body, `"member_id":"1"`) || !strings.Contains(got.Body, "Member created successfully.") {
		t.Errorf("after a change: %v", got)
	}
	e.Call(edgetest.CRMKey, "DELETE", "/1", "")
	if diff := cmp.Diff(edgetest.Failed("The request was done, and the member was deleted since."), e.Call(edgetest.CRMKey, "POST", "", body, "Idempotency-Key", "k1")); diff != "" {
		t.Errorf("after it was deleted: %s", diff)
	}
	db := edgetest.OpenDatabase(t, source)
	id := strings.Repeat("\u2028", 191) // escaped, it takes six bytes
	long := fmt.Sprintf(`{"member_id":"%s","email":"long@example.com","note":"%s"}`, id, strings.Repeat("n", 700))
	if got := e.Call(edgetest.CRMKey, "POST", "", long, "Idempotency-Key", strings.Repeat("k", 255)); got.Status != 200 {
		t.Errorf("got %v, want status 200", got)
	}
	var kept int
	if err := db.Read.QueryRow("SELECT max(length(key) + length(request_hash) + length(guid) + length(header) + length(body)) FROM idempotency").Scan(&kept); err != nil || kept > 4000 {
		t.Errorf("%d bytes are kept of a request, %v", kept, err)
	}
}

// A request that was cut off by a crash before it was done is done anew, and one that was
// cut off after it was done is not done again.
func TestMembersIdempotencyKeyAfterACrash(t *testing.T) {
	source := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(source, "none"))
	store := edgetest.OpenStore(t, source)
	const gone = `{"success":true,"data":[],"message":"Member deleted successfully."}`
	for _, done := range []bool{false, true} {
		for i, test := range []struct{ method, body, want string }{
			{"POST", `{"email":"EMAIL","name":"Jane"}`, "Member created successfully."},
			{"PUT", `{"name":"Cut off"}`, "Member updated successfully."},
			{"DELETE", "", gone},
		} {
			name := fmt.Sprintf("%s, done %t", test.method, done)
			email := fmt.Sprintf("m%d-%t@example.com", i, done)
			path, body := "/"+email, strings.ReplaceAll(test.body, "EMAIL", email)
			if test.method == "POST" {
				path = ""
			} else {
				e.Call(edgetest.FormKey, "POST", "", `{"email":"`+email+`"}`)
			}
			hash := sha256.Sum256([]byte(test.method + " " + strings.TrimPrefix(path, "/") + "\n" + body))
			request := members.Request{Site: "daily", Integration: "form", Key: name, Hash: hex.EncodeToString(hash[:]), GUID: members.NewGUID(), Owner: "died"}
			begun := time.Now().Add(-members.ClaimTime)
			if _, err := store.BeginRequest(t.Context(), request, begun); err != nil {
				t.Fatalf("store.BeginRequest: %v", err)
			}
			if done {
				writeAs(t, store, request, test.method, email)
			}
			got := e.Call(edgetest.FormKey, test.method, path, body, "Idempotency-Key", name)
			if got.Status != 200 || !strings.Contains(got.Body, test.want) {
				t.Errorf("%s: got %v, want status 200, body with %v", name, got, test.want)
			}
			if test.method == "PUT" && strings.Contains(got.Body, "Cut off") == done {
				t.Errorf("%s: %v, want the name of a later write only if it was done", name, got)
			}
			if diff := cmp.Diff(got, e.Call(edgetest.FormKey, test.method, path, body, "Idempotency-Key", name)); diff != "" {
				t.Errorf("%s, again: %s", name, diff)
			}
		}
	}
}

// writeAs stores the write of a request as an edge does that then dies: a create, a deletion,
// or an update, after which somebody else gives the member another name.
func writeAs(t *testing.T, store *memberstore.SQL, request members.Request, method, email string) {
	t.Helper()
	if method == "POST" {
		now := time.Now().UTC().Truncate(time.Millisecond)
		r := members.Record{Member: members.Member{GUID: request.GUID, Email: email, Name: "Jane", Status: "free", CreatedAt: now, UpdatedAt: now}, Site: "daily", Applied: 1, Claim: &request}
		if err := store.Insert(t.Context(), r, "form", members.Lease{}); err != nil {
			t.Fatalf("store.Insert: %v", err)
		}
		return
	}
	r, err := store.Find(t.Context(), members.Key{Site: "daily", Email: email})
	if err != nil {
		t.Fatalf("store.Find: %v", err)
	}
	r.Claim, r.Applied = &request, r.Version+1
	if method == "DELETE" {
		err = store.Remove(t.Context(), r)
	} else {
		r.Name = "Later"
		err = store.Update(t.Context(), r)
	}
	if err != nil {
		t.Fatalf("store.Find: %v", err)
	}
}

// A create whose edge died before it was answered, and whose member was deleted since, is not
// done again, however often it is repeated.
func TestRepeatOfADeletedMember(t *testing.T) {
	source := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(source, "none"))
	create := func() edgetest.Response {
		return e.Call(edgetest.FormKey, "POST", "", `{"email":"a@example.com"}`, "Idempotency-Key", "k")
	}
	if first := create(); first.Status != 200 {
		t.Fatalf("create = %v, want status 200", first)
	}
	e.Call(edgetest.FormKey, "DELETE", "/a@example.com", "")
	db := edgetest.OpenDatabase(t, source)
	// 2 is stored and not answered (memberstore/migrations/00008_claims.sql).
	dbtest.Exec(t, db, `UPDATE idempotency SET status = 2, header = '', body = '', owner_until = 0`)
	for n := range 3 {
		if got := create(); !strings.Contains(got.Body, `"code":"deleted_since"`) {
			t.Errorf("repeat %d: %v, want deleted_since", n, got)
		}
	}
}
