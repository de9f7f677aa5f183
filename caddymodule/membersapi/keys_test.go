package membersapi_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

func TestMembersKeys(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersSites{Store: edgetest.SQLiteStore(t), Platform: "none", Limit: "30 1m"}.Caddyfile())
	unauthorized := exchange.JSON(401, `{"success":false,"message":"The integration key is missing or not valid. Send Authorization: Bearer and the key.","code":"unauthorized"}`, "Www-Authenticate", "Bearer")
	for name, authorization := range map[string]string{
		"none": "", "empty": "Bearer ", "truncated": "Bearer " + edgetest.FormKey[:30], "of another site": "Bearer " + edgetest.OtherKey,
		"another scheme": "Basic " + edgetest.FormKey, "bare": edgetest.FormKey,
	} {
		header := []string{"X-Forwarded-For", "192.0.2.1"}
		if authorization != "" {
			header = append(header, "Authorization", authorization)
		}
		if diff := cmp.Diff(unauthorized, e.Do("GET", "/integration/members/a@example.com", header...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", name, diff)
		}
	}
	start := time.Now()
	if got := e.Do("GET", "/integration/members/a@example.com", "Authorization", "bearer "+edgetest.FormKey); got.Status != 404 {
		t.Errorf("the scheme in lower case: %v", got)
	}
	if diff := cmp.Diff(exchange.JSON(404, `{"success":false,"message":"There is no site at this address.","code":"no_endpoint"}`), e.Call(edgetest.FormKey, "GET", "/a@example.com", "", "Host", "nobody.example.com")); diff != "" {
		t.Errorf("e.call (-want +got):\n%s", diff)
	}
	// The allowance is each key's own; guessing has one for each address.
	for n := 1; n < 30; n++ {
		if got := e.Call(edgetest.FormKey, "GET", "/a@example.com", ""); got.Status != 404 {
			t.Fatalf("request %d: %v", n, got)
		}
	}
	got := e.Call(edgetest.FormKey, "GET", "/a@example.com", "")
	seconds := got.Header["Retry-After"]
	if diff := cmp.Diff(exchange.JSON(429, `{"success":false,"message":"Too many requests. Try again in `+seconds+` s.","code":"too_many_requests"}`, "Retry-After", seconds), got); diff != "" || !edgetest.IsRest(seconds, time.Minute, start) {
		t.Errorf("got Retry-After %s, want what is left of the minute; response (-want +got):\n%s", seconds, diff)
	}
	if got := e.Call(edgetest.CRMKey, "GET", "/a", ""); got.Status != 404 {
		t.Errorf("another key: %v", got)
	}
	for n := 6; n < 30; n++ {
		e.Do("GET", "/integration/members/x", "Authorization", "Bearer wrong", "X-Forwarded-For", "192.0.2.1")
	}
	if got := e.Do("GET", "/integration/members/x", "Authorization", "Bearer wrong", "X-Forwarded-For", "192.0.2.1"); got.Status != 429 {
		t.Errorf("guess 31: %v", got)
	}
	if got := e.Call(edgetest.CRMKey, "GET", "/a", "", "X-Forwarded-For", "192.0.2.1"); got.Status != 429 {
		t.Errorf("a guess that is right: %v", got)
	}
	if got := e.Do("GET", "/integration/members/x", "Authorization", "Bearer wrong", "X-Forwarded-For", "192.0.2.2"); got.Status != 401 {
		t.Errorf("a guess from elsewhere: %v", got)
	}
	// Where a CRM has sent its key, others who guess do not lock it out.
	if got := e.Call(edgetest.CRMKey, "GET", "/a", "", "X-Forwarded-For", "192.0.2.3"); got.Status != 404 {
		t.Errorf("a key: %v", got)
	}
	for n := range 40 {
		want := 401
		if n >= 29 { // the key's own first request was one, since nobody knew it yet
			want = 429
		}
		if got := e.Do("GET", "/integration/members/x", "Authorization", "Bearer wrong", "X-Forwarded-For", "192.0.2.3"); got.Status != want {
			t.Errorf("guess %d: %v", n, got)
		}
	}
	if got := e.Call(edgetest.CRMKey, "GET", "/a", "", "X-Forwarded-For", "192.0.2.3"); got.Status != 404 {
		t.Errorf("the key after guesses: %v", got)
	}
}
