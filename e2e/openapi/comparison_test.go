package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// documents are those of the servers.
var documents = map[string]string{edgeServer: "openapi.yaml", adminServer: "admin_openapi.yaml"}

func newTestComparison(t *testing.T, server string) *comparison {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", documents[server]))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	c, err := newComparison(server, text)
	if err != nil {
		t.Fatalf("newComparison: %v", err)
	}
	return c
}

const member = `{"guid":"01a1fdbe-554f-711b-b621-fe416d154f7d","email":"jane@example.com","name":"","is_subscribed":true,"note":"","labels":["VIP"],` +
	`"tier_id":null,"member_id":null,"status":"free","created_at":"2026-11-21T10:54:31Z","updated_at":"2026-11-21T10:54:31Z"}`

// made is a create and its response, looked is a lookup; neither is wrong.
func made() *exchange {
	return &exchange{
		Server: edgeServer, Method: "POST", Target: "/integration/members",
		RequestHeader: http.Header{"Content-Type": {"application/json"}}, RequestBody: `{"email":"jane@example.com","tier_id":null,"unknown":1}`,
		Status: 200, Body: `{"success":true,"data":` + member + `,"message":"Member created successfully."}`,
		Header: http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "Etag": {`"5d41402abc4b2a76b9719d91"`},
			"Date": {"Sat, 21 Nov 2026 11:56:56 GMT"}, "X-Content-Type-Options": {"nosniff"},
		},
	}
}

func looked() *exchange {
	return &exchange{
		Server: edgeServer, Method: "GET", Target: "/ghost/inbox-provider?v=1&domain=example.com",
		Status: 200, Body: `{"provider":null}`,
		Header: http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {"public, max-age=86400"}, "Access-Control-Allow-Origin": {"*"},
		},
	}
}

// listed is a list of sites of the admin API, which is not wrong.
func listed() *exchange {
	return &exchange{
		Server: adminServer, Method: "GET", Target: "/lychgate/sites/?limit=1", Status: 200,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
		Body: `{"sites":[{"name":"weekly","hosts":["weekly.example.com"],"platform":{"kind":"ghost","url":"http://127.0.0.1:2369"},` +
			`"created_at":"2026-11-22T17:49:44.492Z","updated_at":"2026-11-22T17:49:44.492Z"}],"next":"/lychgate/sites?after=weekly&limit=1"}`,
	}
}

func failure(status int, message string) func(*exchange) {
	return func(e *exchange) {
		e.Status, e.Body = status, `{"success":false,"message":"`+message+`","code":"invalid"}`
		delete(e.Header, "Etag")
	}
}

func replace(before, after string) func(*exchange) {
	return func(e *exchange) { e.Body = strings.ReplaceAll(e.Body, before, after) }
}

func header(name string, values ...string) func(*exchange) {
	return func(e *exchange) {
		e.Header[name] = values
		if values == nil {
			delete(e.Header, name)
		}
	}
}

func by(method string) func(*exchange) { return func(e *exchange) { e.Method = method } }

// asked is a request without a body.
func asked(method, target string) func(*exchange) {
	return func(e *exchange) { e.Method, e.Target, e.RequestBody = method, target, "" }
}

func all(changes ...func(*exchange)) func(*exchange) {
	return func(e *exchange) {
		for _, change := range changes {
			change(e)
		}
	}
}

// Whatever is wrong with a response is found, and nothing else.
func TestWrongResponsesAreFound(t *testing.T) {
	tests := []struct {
		name   string
		base   func() *exchange
		change func(*exchange)
		want   string // in the finding; empty for none
	}{
		{"a member is made", made, func(*exchange) {}, ""},
		{"a slash at the end", made, func(e *exchange) { e.Target += "/" }, ""},
		{"no Content-Type is sent", made, func(e *exchange) { e.RequestHeader = http.Header{} }, ""},
		{"strings where there may be null", made, replace("null", `"x"`), ""},
		{"not made", made, failure(200, "The email is already taken."), ""},
		{"not made, and the request is not allowed", made, func(e *exchange) {
			failure(200, "The email is required.")(e)
			e.RequestBody = "{}"
		}, ""},
		{"another path", made, func(e *exchange) { e.Target, e.Body = "/integration/tiers", "" }, ""},
		{"another method", made, all(failure(405, "No."), by("PATCH"), header("Allow", "POST")), ""},
		{"an identifier with a slash", made, all(failure(404, "Member not found."), asked("GET", "/integration/members/a/b%2Fc")), ""},
		{"passed through", made, func(e *exchange) { e.Status, e.Body = 418, "the page behind" }, ""},

		{"a field is missing", made, replace(`"note":"",`, ""), "missing property 'note'"},
		{"a field too many", made, replace(`"note":`, `"uuid":"","note":`), "additional properties 'uuid' not allowed"},
		{"null where there is none", made, replace(`"name":""`, `"name":null`), "got null, want string"},
		{"a number", made, replace(`"tier_id":null`, `"tier_id":1`), "got number, want null or string"},
		{"labels null", made, replace(`["VIP"]`, "null"), "got null, want array"},
		{"another status of a member", made, replace(`"free"`, `"comped"`), "/data/status"},
		{"a new member who pays", made, replace(`"free"`, `"paid"`), "/data/status"},
		{"a time with fractions", made, replace(`31Z","updated`, `31.5Z","updated`), "/data/created_at"},
		{"a time in a zone", made, replace(`31Z","updated`, `31+01:00","updated`), "/data/created_at"},
		{"no such day", made, replace(`created_at":"2026-11`, `created_at":"2026-13`), "/data/created_at"},
		{"an email that is none", made, replace("jane@", "jane"), "/data/email"},
		{"no data", made, replace(`"data":`+member+`,`, ""), "missing property 'data'"},
		{"data of a failure", made, replace("true,\"data\"", "false,\"data\""), "response body doesn't match schema"},
		{"another message", made, replace("created success", "made success"), "/message"},
		{"no JSON", made, func(e *exchange) { e.Body = "oops" }, "failed to decode response body"},
		{"another type", made, header("Content-Type", "text/plain"), "Content-Type"},
		{"an error is not in the envelope", made, func(e *exchange) {
			e.Status, e.Body = 404, `{"error":"not found"}`
			delete(e.Header, "Etag")
		}, "missing properties 'success', 'message'"},
		{"another status", made, failure(400, "No."), "the document does not have this status"},
		{"another status to another method", made, all(failure(501, "No."), by("PATCH")), "the document does not have this status"},
		{"no Cache-Control", made, header("Cache-Control"), `"Cache-Control" missing`},
		{"another Cache-Control", made, header("Cache-Control", "private"), `"Cache-Control" doesn't match`},
		{"an ETag of another form", made, header("Etag", `W/"1"`), `"ETag" doesn't match`},
		{"another header", made, header("X-Powered-By", "x"), "X-Powered-By"},
		{"429 without Retry-After", made, failure(429, "Too many."), `"Retry-After" missing`},
		{"Retry-After of nothing", made, all(failure(429, "Too many."), header("Retry-After", "0")), `"Retry-After" doesn't match`},
		{"401 without WWW-Authenticate", made, failure(401, "No."), `"WWW-Authenticate" missing`},
		{"405 with other methods in Allow", made, all(failure(405, "No."), by("GET"), header("Allow", "GET")), `"Allow" doesn't match`},
		{"HEAD with a body", made, asked("HEAD", "/integration/members/x"), "there is a body"},
		{"HEAD without a header", made, func(e *exchange) {
			e.Method, e.Target, e.RequestBody, e.Body = "HEAD", "/integration/members/x", "", ""
			header("Cache-Control")(e)
		}, `"Cache-Control" missing`},

		{"done without an email", made, func(e *exchange) { e.RequestBody = "{}" }, "the edge did what the document does not allow"},
		{"done with a note of null", made, func(e *exchange) { e.RequestBody = `{"email":"jane@example.com","note":null}` }, "the edge did what the document does not allow"},
		{"done with another type", made, func(e *exchange) { e.RequestHeader.Set("Content-Type", "text/plain") }, "the edge did what the document does not allow"},
		{"done with a long key", made, func(e *exchange) { e.RequestHeader.Set("Idempotency-Key", strings.Repeat("x", 256)) }, "the edge did what the document does not allow"},

		{"a domain that cannot be placed", looked, func(*exchange) {}, ""},
		{"a domain that is placed", looked, replace("null", `"gmail"`), ""},
		{"a provider that there is not", looked, replace("null", `"gmx"`), "/provider"},
		{"no provider", looked, replace(`"provider":null`, ""), "missing property 'provider'"},
		{"a cookie may be sent", looked, header("Access-Control-Allow-Credentials", "true"), "Access-Control-Allow-Credentials"},
		{"one origin only", looked, header("Access-Control-Allow-Origin", "https://example.com"), `"Access-Control-Allow-Origin" doesn't match`},
		{"a single word is looked up", looked, func(e *exchange) { e.Target = "/ghost/inbox-provider?domain=word" }, "the edge did what the document does not allow"},
		{"no domain is looked up", looked, func(e *exchange) { e.Target = "/ghost/inbox-provider" }, "the edge did what the document does not allow"},
		{"sites of the admin API", listed, func(*exchange) {}, ""},
		{"of the other server", listed, func(e *exchange) { e.Server, e.Body = edgeServer, "oops" }, ""},
		{"a key of a site is shown", listed, replace(`"url":`, `"admin_key":"x","url":`), "additional properties 'admin_key' not allowed"},
		{"too long a page is given", listed, func(e *exchange) { e.Target = "/lychgate/sites?limit=1001" }, "the edge did what the document does not allow"},
		{"integrations are not taken for a site", listed, func(e *exchange) {
			e.Target, e.Body = "/lychgate/sites/weekly/integrations/", `{"integrations":[]}`
		}, ""},
		{"an error of another form", listed, all(failure(404, "No."), asked("GET", "/lychgate/sites/weekly"), header("Cache-Control")), "missing property 'error'"},

		{"the page behind", looked, func(e *exchange) {
			e.Body, e.Header = "the site's own page", http.Header{"Content-Type": {"text/plain"}, "Cache-Control": {"no-store"}, "Access-Control-Allow-Origin": {"*"}}
		}, "Content-Type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newTestComparison(t, test.base().Server)
			e := test.base()
			test.change(e)
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatalf("json.Marshal: %v", err)
			}
			if err := c.readAll(bytes.NewReader(line)); err != nil {
				t.Fatalf("c.readAll: %v", err)
			}
			var all []string
			for _, f := range c.findings {
				all = append(all, f.what)
			}
			got := strings.Join(all, "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// What is documented and was not seen is a finding each, and so is what the
// edge answers wrong, once however often.
func TestReportHasEachFindingOnce(t *testing.T) {
	c := newTestComparison(t, edgeServer)
	documented := len(c.documented())
	if documented < 40 {
		t.Errorf("%d answers are documented", documented)
	}
	var report bytes.Buffer
	if got := c.report(&report); got != documented || !strings.Contains(report.String(), "/integration/members/{identifier}, HEAD: 500: no test has seen it") {
		t.Errorf("%d findings, want %d: %s", got, documented, report.String())
	}
	for range 3 {
		wrong := looked()
		wrong.Header["Cache-Control"] = []string{"private"}
		wrong.RequestHeader = http.Header{"X-Forwarded-For": {"192.0.2.1"}}
		for _, e := range []*exchange{looked(), wrong} {
			if err := c.compare(e); err != nil {
				t.Fatalf("c.compare: %v", err)
			}
		}
	}
	report.Reset()
	if got := c.report(&report); got != documented || !strings.Contains(report.String(), "     6  /ghost/inbox-provider, GET: 200\n") {
		t.Errorf("%d findings, want one seen and one wrong: %s", got, report.String())
	}
}

// Each path says how the methods are answered that it does not have.
func TestOtherMethods(t *testing.T) {
	for server := range documents {
		for _, p := range newTestComparison(t, server).paths {
			if p.item.Trace == nil {
				t.Errorf("%s: %s is missing", p.template, otherMethodsExtension)
			}
		}
	}
}

// A file that is cut off is not taken for a good one.
func TestCutOff(t *testing.T) {
	c := newTestComparison(t, edgeServer)
	if err := c.readAll(strings.NewReader(`{"method":"GET","tar`)); err == nil {
		t.Error("readAll: got no error, want one for a line that is cut off")
	}
}
