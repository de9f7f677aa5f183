package members

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// A failure has the code and the headers of its error, however often that is wrapped.
func TestWriteError(t *testing.T) {
	for _, test := range []struct {
		err         error
		status      int
		outcome     api.Outcome
		body        string
		name, value string // of a header
	}{
		{
			errUnauthorized, 401, api.Unauthorized,
			`{"success":false,"message":"The integration key is missing or not valid. Send Authorization: Bearer and the key.","code":"unauthorized"}`,
			"Www-Authenticate", "Bearer",
		},
		{&members.InvalidError{Message: "No."}, 200, api.Rejected, `{"success":false,"message":"No.","code":"invalid"}`, "", ""},
		{&members.InvalidError{Message: "No.", Code: members.CodeRefused}, 200, api.Rejected, `{"success":false,"message":"No.","code":"refused"}`, "", ""},
		{members.ErrNotFound, 404, api.NotFound, `{"success":false,"message":"Member not found.","code":"not_found"}`, "", ""},
		{api.ErrNoEndpoint, 404, api.Other, `{"success":false,"message":"There is no such endpoint.","code":"no_endpoint"}`, "", ""},
		{
			&members.RefusedError{Reason: "a@example.com is blocked"}, 404, api.NotFound,
			`{"success":false,"message":"Member not found.","code":"not_found"}`, "Lychgate-Sync-Reason", "%E2%80%A6 is blocked",
		},
	} {
		for _, err := range []error{test.err, fmt.Errorf("doing it: %w", test.err)} {
			w := httptest.NewRecorder()
			outcome := writeError(w, zap.NewNop(), err)
			want := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}}
			if test.name != "" {
				want.Set(test.name, test.value)
			}
			if test.name == "Lychgate-Sync-Reason" {
				want.Set("Lychgate-Sync", "refused")
			}
			if w.Code != test.status || outcome != test.outcome || w.Body.String() != test.body {
				t.Errorf("%v: got %d, %s, %s, want %d, %s, %s", err, w.Code, outcome, w.Body, test.status, test.outcome, test.body)
			}
			if diff := cmp.Diff(want, w.Header()); diff != "" {
				t.Errorf("%v: headers (-want +got): %s", err, diff)
			}
		}
	}
}
