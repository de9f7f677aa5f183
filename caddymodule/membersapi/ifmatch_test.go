package membersapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// A CRM that reads, merges and writes does not undo another's write.
func TestMembersIfMatch(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "none"))
	e.Call(edgetest.FormKey, "POST", "", `{"email":"a@example.com"}`)
	read := e.Call(edgetest.FormKey, "GET", "/a@example.com", "").Header["Etag"]
	for _, change := range []func(string) string{ // as compressing handlers do
		func(tag string) string { return strings.TrimSuffix(tag, `"`) + `-zstd"` },
		func(tag string) string { return "W/" + tag },
	} {
		tag := change(read)
		if got := e.Call(edgetest.FormKey, "PUT", "/a@example.com", `{"name":"a"}`, "If-Match", tag); got.Status != 200 {
			t.Errorf("%s: got %v, want status 200", tag, got)
		}
		read = e.Call(edgetest.FormKey, "GET", "/a@example.com", "").Header["Etag"]
	}
	if got := e.Call(edgetest.FormKey, "PUT", "/a@example.com", `{"name":"a"}`, "If-Match", strings.TrimSuffix(read, `"`)+`0"`); got.Status != 412 {
		t.Errorf("another version: %v", got)
	}
	if got := e.Call(edgetest.FormKey, "PUT", "/a@example.com", `{"labels":["mine"]}`, "If-Match", `"else", `+read); got.Status != 200 || got.Header["Etag"] == read {
		t.Errorf("as read: %v", got)
	}
	want := exchange.JSON(412, `{"success":false,"message":"The member was changed since it was read. Read it again.","code":"changed"}`)
	if diff := cmp.Diff(want, e.Call(edgetest.FormKey, "PUT", "/a@example.com", `{"labels":["late"]}`, "If-Match", read)); diff != "" {
		t.Errorf("e.call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, e.Call(edgetest.FormKey, "DELETE", "/a@example.com", "", "If-Match", read)); diff != "" {
		t.Errorf("e.call (-want +got):\n%s", diff)
	}
	got := e.Call(edgetest.FormKey, "GET", "/a@example.com", "")
	if !strings.Contains(got.Body, `"labels":["mine"]`) {
		t.Errorf("got %v, want body with %s", got, `"labels":["mine"]`)
	}
	if got := e.Call(edgetest.FormKey, "DELETE", "/a@example.com", "", "If-Match", got.Header["Etag"]); got.Status != 200 {
		t.Errorf("as read: %v", got)
	}
}

// Many writes within a second have a tag each. The first has another time than the create, and none has one that is
// more than a second ahead.
func TestMembersTagsOfManyWrites(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "none"))
	response := e.Call(edgetest.FormKey, "POST", "", `{"email":"a@example.com","name":"a"}`)
	tags := map[string]int{response.Header["Etag"]: 0}
	made := updatedAt(response)
	for i := 1; i <= 31; i++ {
		response = e.Call(edgetest.FormKey, "PUT", "/a@example.com", `{"name":"a"}`)
		if got := updatedAt(response); i == 1 && got == made {
			t.Errorf("updated_at after an update: got %q, want another than after the create", got)
		}
		if before, seen := tags[response.Header["Etag"]]; seen {
			t.Errorf("write %d has the tag of write %d", i, before)
		}
		tags[response.Header["Etag"]] = i
	}
	if read := e.Call(edgetest.FormKey, "GET", "/a@example.com", ""); read.Header["Etag"] != response.Header["Etag"] {
		t.Errorf("answered %q, read %q", response.Header["Etag"], read.Header["Etag"])
	}
	updated := updatedAt(response)
	if when, err := time.Parse(time.RFC3339, updated); err != nil || when.After(time.Now().Add(time.Second)) {
		t.Errorf("updated at %q, and it is %v: %v", updated, time.Now().UTC(), err)
	}
}

func updatedAt(of edgetest.Response) string {
	_, updated, _ := strings.Cut(of.Body, `"updated_at":"`)
	updated, _, _ = strings.Cut(updated, `"`)
	return updated
}
