package ghost

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Of many members, a real Ghost has those who were not deleted.
func TestRealMembersOf(t *testing.T) {
	c := newClient(t, realConfig(t))
	uuids := make([]string, 0, platform.MaxMembersOf)
	for n := range 3 {
		m, err := c.Create(t.Context(), platform.Member{Email: unique(fmt.Sprint("found", n))})
		if err != nil {
			t.Fatalf("c.Create: %v", err)
		}
		t.Cleanup(func() { _ = c.Delete(t.Context(), m.ID) })
		var found struct{ Members []struct{ UUID string } }
		if err := c.memberClient.call(t.Context(), http.MethodGet, "/members/"+m.ID+"/", url.Values{}, nil, &found); err != nil {
			t.Fatalf("c.call: %v", err)
		}
		uuids = append(uuids, found.Members[0].UUID)
		if n == 1 {
			if err := c.Delete(t.Context(), m.ID); err != nil {
				t.Fatalf("c.Delete: %v", err)
			}
		}
	}
	asked := slices.Clone(uuids)
	for n := len(asked); n < platform.MaxMembersOf; n++ {
		asked = append(asked, fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
	}
	there, err := c.MembersOf(t.Context(), asked)
	slices.Sort(there)
	want := []string{uuids[0], uuids[2]}
	slices.Sort(want)
	if diff := cmp.Diff(want, there); diff != "" || err != nil {
		t.Errorf("%v, want those who were not deleted (-want +got): %s", err, diff)
	}
}

// A response that is none of these members says nothing of them.
func TestMembersOfAnotherAnswer(t *testing.T) {
	for response, want := range map[string][]string{
		`{"members":[{"uuid":"b"}]}`:              {"b"},
		`{"members":[]}`:                          nil,
		`{"members":[{"uuid":"a"},{"uuid":"z"}]}`: {"error"},
		`{}`:                 {"error"},
		`{"members":null}`:   {"error"},
		`{"errors":[{}]}`:    {"error"},
		`<html>Hello</html>`: {"error"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if filter := r.URL.Query().Get("filter"); filter != "uuid:['a','b']" || !strings.HasSuffix(r.URL.Path, "/members/") {
				t.Errorf("it is asked for %s, want two UUIDs", r.URL)
			}
			_, _ = w.Write([]byte(response))
		}))
		there, err := newClient(t, Config{URL: server.URL, AdminKey: testKey}).MembersOf(t.Context(), []string{"a", "b"})
		if err != nil {
			there = []string{"error"}
		}
		if diff := cmp.Diff(want, there); diff != "" {
			t.Errorf("%s (-want +got): %s", response, diff)
		}
		server.Close()
	}
}
