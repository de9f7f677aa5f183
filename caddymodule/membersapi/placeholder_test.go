package membersapi_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// A duplicate never gets mail from Ghost, no matter who asks for it, and an update to a taken
// email changes nobody in Ghost.
func TestPlaceholderInGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	client, err := ghost.New(ghost.Config{URL: url, AdminKey: key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	defer client.Close()
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), edgetest.GhostPlatform(url, key, "off")))
	id := strconv.FormatInt(time.Now().UnixNano(), 10)
	email, placeholder := "jane+"+id+"@example.com", "Dup."+id+"@members.invalid"
	isSubscribed := func(email string) bool {
		t.Helper()
		found, err := client.FindByEmail(t.Context(), email)
		if err != nil {
			t.Fatalf("%s: FindByEmail: %v", email, err)
		}
		if found.Subscribed != (len(found.Newsletters) > 0) {
			t.Errorf("%s: FindByEmail = %+v, want subscribed %v", email, found, len(found.Newsletters) > 0)
		}
		return found.Subscribed
	}
	for _, body := range []string{`{"email":"` + email + `","member_id":"` + id + `"}`, `{"email":"` + email + `","member_id":"Dup.` + id + `","is_subscribed":true}`} {
		if got := e.Write(edgetest.CRMKey, "POST", "", body); !strings.Contains(got.Body, `"success":true`) || got.Header["Lychgate-Sync"] != "" {
			t.Fatalf("got %v, want body with %s, no Lychgate-Sync", got, `"success":true`)
		}
	}
	jane, err := client.FindByEmail(t.Context(), email)
	if err != nil || len(jane.Newsletters) == 0 {
		t.Fatalf("FindByEmail = %+v, %v, want no error, some newsletters", jane, err)
	}
	newsletter := `{"newsletters":[{"id":"` + jane.Newsletters[0] + `"}]}`
	for _, try := range []struct{ key, method, path, body, want string }{
		{edgetest.FormKey, "PUT", "/" + placeholder, `{"is_subscribed":true}`, edgetest.ToPlaceholder},
		{edgetest.FormKey, "PUT", "/" + strings.ToUpper(placeholder), newsletter, edgetest.ToPlaceholder},
		{edgetest.CRMKey, "PUT", "/Dup." + id, `{"is_subscribed":true}`, edgetest.ToPlaceholder},
		{edgetest.CRMKey, "PUT", "/Dup." + id, newsletter, edgetest.ToPlaceholder},
		{edgetest.CRMKey, "PUT", "/" + id, `{"email":"other-` + id + `@members.invalid"}`, edgetest.ToPlaceholder},
		{edgetest.FormKey, "POST", "", `{"email":"new-` + id + `@members.invalid","is_subscribed":true}`, edgetest.ToPlaceholder},
		{edgetest.CRMKey, "PUT", "/Dup." + id, `{"email":"` + email + `","name":"New"}`, "The email is already taken."},
	} {
		if diff := cmp.Diff(edgetest.Failed(try.want), e.Call(try.key, try.method, try.path, try.body)); diff != "" {
			t.Errorf("%s %s %s: response (-want +got):\n%s", try.method, try.path, try.body, diff)
		}
	}
	if !isSubscribed(email) || isSubscribed(placeholder) {
		t.Errorf("subscribed: got Jane %t, the placeholder %t, want true, false", isSubscribed(email), isSubscribed(placeholder))
	}
	if got := e.Write(edgetest.FormKey, "POST", "", `{"email":"default-`+id+`@members.invalid"}`); !strings.Contains(got.Body, `"is_subscribed":false`) || isSubscribed("default-"+id+"@members.invalid") {
		t.Errorf("by default: %v", got)
	}

	// An email that another member has, whom only Ghost knows.
	other := "other+" + id + "@example.com"
	if _, err := client.Create(t.Context(), jane); err == nil {
		t.Fatal("client.Create with Jane's email: got no error, want Ghost to refuse a second member")
	}
	jane.Email = other
	if _, err := client.Create(t.Context(), jane); err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	before := e.Call(edgetest.CRMKey, "GET", "/"+id, "")
	if diff := cmp.Diff(edgetest.Failed("The email is already taken."), e.Call(edgetest.CRMKey, "PUT", "/"+id, `{"email":"`+other+`"}`)); diff != "" {
		t.Errorf("e.call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, e.Call(edgetest.CRMKey, "GET", "/"+id, "")); diff != "" || !isSubscribed(email) {
		t.Errorf("after an update to a taken email: %s", diff)
	}
	if got := e.Call(edgetest.CRMKey, "PUT", "/"+id, `{"email":"`+strings.ToUpper(email[:1])+email[1:]+`","name":"Jane"}`); !strings.Contains(got.Body, `"name":"Jane"`) || !strings.Contains(got.Body, `"is_subscribed":true`) {
		t.Errorf("its own email: %v", got)
	}
}
