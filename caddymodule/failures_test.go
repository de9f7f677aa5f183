package caddymodule_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// Each method answers each failure in the same way, so that a CRM can treat
// them alike.
func TestMembersFailuresOfEachMethod(t *testing.T) {
	store := edgetest.SQLiteStore(t)
	config := edgetest.MembersConfig(store, "none")
	e := edgetest.StartEdge(t, nil, config)
	body := map[string]string{"POST": `{"email":"new@example.com"}`, "PUT": `{}`}
	each := func(name, key string, want edgetest.Response, header ...string) {
		t.Helper()
		for _, method := range []string{"POST", "GET", "HEAD", "PUT", "DELETE"} {
			path, want := "/jane@example.com", want
			switch method {
			case "POST":
				path = ""
			case "HEAD":
				want.Body = ""
			}
			got := e.Call(key, method, path, body[method], header...)
			if _, ok := want.Header["Retry-After"]; ok {
				want.Header["Retry-After"] = got.Header["Retry-After"]
				want.Body = strings.Replace(want.Body, "60 s", got.Header["Retry-After"]+" s", 1)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: response (-want +got):\n%s", name, method, diff)
			}
		}
	}
	made := e.Call(edgetest.FormKey, "POST", "", `{"email":"jane@example.com"}`)
	if diff := cmp.Diff(exchange.JSON(200, "", "Etag", made.Header["Etag"]), e.Call(edgetest.FormKey, "HEAD", "/jane@example.com", "")); diff != "" {
		t.Errorf("HEAD: %s", diff)
	}
	each("a key of nobody", "nobody", exchange.JSON(401, `{"success":false,"message":"The integration key is missing or not valid. Send Authorization: Bearer and the key.","code":"unauthorized"}`, "Www-Authenticate", "Bearer"))
	each("a host of no site", edgetest.FormKey, exchange.JSON(404, `{"success":false,"message":"There is no site at this address.","code":"no_endpoint"}`), "Host", "nobody.example.com")
	if got := e.Call(edgetest.FormKey, "PUT", "/jane@example.com", `{"note":"`+strings.Repeat("x", 65536)+`"}`); got.Status != 413 {
		t.Errorf("a large change: %v", got)
	}

	e.Load(edgetest.MembersSites{Store: store, Platform: "none", Limit: "1 1m"}.Caddyfile())
	if got := e.Call(edgetest.FormKey, "GET", "/jane@example.com", ""); got.Status != 200 {
		t.Errorf("the one that is allowed: %v", got)
	}
	each("too many", edgetest.FormKey, exchange.JSON(429, `{"success":false,"message":"Too many requests. Try again in 60 s.","code":"too_many_requests"}`, "Retry-After", "60"))

	e.Load(config)
	if got := e.Call(edgetest.FormKey, "GET", "/jane@example.com", ""); got.Status != 200 {
		t.Errorf("after refused changes: %v", got)
	}
	db := edgetest.OpenDatabase(t, store)
	dbtest.Exec(t, db, "DROP TABLE members")
	each("a broken store", edgetest.FormKey, exchange.JSON(500, `{"success":false,"message":"Internal error.","code":"internal_error"}`))
}

// HEAD and OPTIONS fail as GET does, without the body of a response to HEAD.
func TestLookupFailuresOfEachMethod(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	const target = "/ghost/inbox-provider?domain="
	noSite := edgetest.JSONResponse(404, "no-store", `{"message":"There is no site at this address."}`)
	if diff := cmp.Diff(noSite, e.Do("OPTIONS", target+"gmail.com", "Host", "nobody.example.com")); diff != "" {
		t.Errorf("OPTIONS, a host of no site: %s", diff)
	}
	same := func(name, target string, status int, header ...string) {
		t.Helper()
		get, head := e.Do("GET", target, header...), e.Do("HEAD", target, header...)
		get.Body = ""
		if diff := cmp.Diff(get, head); diff != "" || head.Status != status {
			t.Errorf("%s: %d: mismatch (-want +got):\n%s", name, head.Status, diff)
		}
	}
	same("a host of no site", target+"gmail.com", 404, "Host", "nobody.example.com")
	same("rejected", target+"word", 422, "Accept", "application/json")
	same("redirected", target+"word", 302)
	for range 6 {
		e.Do("HEAD", target+"gmail.com")
	}
	same("too many", target+"gmail.com", 429)
}
