package membersapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

func TestMembersAPI(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "none"))
	const (
		jane    = `"guid":"GUID","email":"Jane@Example.com","name":"Jane <Doe>","is_subscribed":true,"note":"a\nb","labels":["VIP","crm"],"tier_id":"prod_1","member_id":null,"status":"free","created_at":"TIME","updated_at":"TIME"`
		renamed = `"guid":"GUID","email":"jane@example.org","name":"Jane <Doe>","is_subscribed":false,"note":"a\nb","labels":[],"tier_id":null,"member_id":null,"status":"free","created_at":"TIME","updated_at":"TIME"`
		bare    = `"guid":"GUID","email":"joe@example.com","name":"","is_subscribed":true,"note":"","labels":[],"tier_id":null,"member_id":null,"status":"free","created_at":"TIME","updated_at":"TIME"`
	)
	notFound := exchange.JSON(404, `{"success":false,"message":"Member not found.","code":"not_found"}`)
	steps := []struct {
		name, method, path, body string
		want                     edgetest.Response
	}{
		{"read nobody", "GET", "/jane@example.com", "", notFound},
		{"update nobody", "PUT", "/jane@example.com", `{}`, notFound},
		{"delete nobody", "DELETE", "/jane@example.com", "", notFound},
		{
			"create", "POST", "", `{"email":"Jane@Example.com","name":"Jane <Doe>","note":"a\nb","labels":["VIP","crm","vip"],"tier_id":"prod_1","member_id":"ignored","unknown":1}`,
			exchange.JSON(200, `{"success":true,"data":{`+jane+`},"message":"Member created successfully."}`, "Etag", `"TAG"`, "Lychgate-Ignored-Fields", "unknown"),
		},
		{
			"create with as little as can be", "POST", "/", `{"email":"joe@example.com"}`,
			exchange.JSON(200, `{"success":true,"data":{`+bare+`},"message":"Member created successfully."}`, "Etag", `"TAG"`),
		},
		{"create again", "POST", "", `{"email":"JANE@example.com"}`, edgetest.Failed("The email is already taken.")},
		{
			"read, in another case and escaped", "GET", "/jane%40EXAMPLE.com", "",
			exchange.JSON(200, `{"success":true,"data":{`+jane+`},"message":"Member retrieved successfully."}`, "Etag", `"TAG"`),
		},
		{"update to a taken email", "PUT", "/jane@example.com", `{"email":"joe@example.com"}`, edgetest.Failed("The email is already taken.")},
		{
			"update", "PUT", "/jane@example.com", `{"email":"jane@example.org","is_subscribed":false,"labels":[],"tier_id":null}`,
			exchange.JSON(200, `{"success":true,"data":{`+renamed+`},"message":"Member updated successfully."}`, "Etag", `"TAG"`),
		},
		{
			"update with what was read", "PUT", "/jane@example.org", `{"member_id":null,"guid":"x","status":"paid"}`,
			exchange.JSON(200, `{"success":true,"data":{`+renamed+`},"message":"Member updated successfully."}`, "Etag", `"TAG"`),
		},
		{"read the old email", "GET", "/jane@example.com", "", notFound},
		{"delete", "DELETE", "/JANE@example.org", "", exchange.JSON(200, `{"success":true,"data":[],"message":"Member deleted successfully."}`)},
		{"delete again", "DELETE", "/jane@example.org", "", notFound},
		{
			"create after delete", "POST", "", `{"email":"jane@example.org"}`,
			exchange.JSON(200, `{"success":true,"data":{`+strings.Replace(bare, "joe@example.com", "jane@example.org", 1)+`},"message":"Member created successfully."}`, "Etag", `"TAG"`),
		},
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, edgetest.Plain(e.Call(edgetest.FormKey, step.method, step.path, step.body))); diff != "" {
			t.Errorf("%s: plain (-want +got):\n%s", step.name, diff)
		}
	}
	if got := e.Do("GET", "/integrations"); got.Body != "the site's own page at /integrations" {
		t.Errorf("another path: %v", got)
	}
}

// Each mistake has its own response, and none of them changes anything.
func TestMembersBadInput(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "none"))
	badEmail := edgetest.Failed("The email is not a valid address.")
	notObject := edgetest.Failed("The body must be a JSON object.")
	notText := edgetest.Failed("The body must be JSON in UTF-8, without escapes of half a character.")
	tests := []struct {
		name, body string
		want       edgetest.Response
	}{
		{"no body", "", edgetest.Failed("The body must be a JSON object. It is empty.")},
		{"cut off", `{"email":`, edgetest.Failed("The body must be a JSON object. It is not valid JSON, from byte 9 of 9 on.")},
		{"a name without quotes", `{"email": "a@example.com", labels: []}`, edgetest.Failed("The body must be a JSON object. It is not valid JSON, from byte 28 of 38 on.")},
		{"an array", `[]`, notObject},
		{"null", `null`, notObject},
		{"two objects", `{"email":"a@example.com"} {}`, edgetest.Failed("The body must be a JSON object. It is not valid JSON, from byte 27 of 28 on.")},
		{"not UTF-8", "{\"email\":\"a@example.com\",\"name\":\"\xff\"}", notText},
		{"half a character", `{"email":"a@example.com","name":"\ud83d"}`, notText},
		{"no email", `{}`, edgetest.Failed("The email is required.")},
		{"email null", `{"email":null}`, edgetest.Failed("The email must be a string.")},
		{"email a number", `{"email":1}`, edgetest.Failed("The email must be a string.")},
		{"email no address", `{"email":"jane"}`, badEmail},
		{"email of 300 characters", `{"email":"` + strings.Repeat("x", 288) + `@example.com"}`, edgetest.Failed("The email must have 191 characters at most.")},
		{"email with CR LF", `{"email":"a@example.com\r\nBcc: b@example.com"}`, badEmail},
		{"email with a quote", `{"email":"a\"@example.com"}`, badEmail},
		{"name a list", `{"email":"a@example.com","name":[]}`, edgetest.Failed("The name must be a string.")},
		{"name null", `{"email":"a@example.com","name":null}`, edgetest.Failed("The name must be a string.")},
		{"note null", `{"email":"a@example.com","note":null}`, edgetest.Failed(`The note must be a string; write "" to set none.`)},
		{"subscribed", `{"email":"a@example.com","subscribed":false}`, edgetest.Failed("There is no field subscribed: write is_subscribed, true or false.")},
		{"in other words", `{"email":"a@example.com","optOut":true}`, edgetest.Failed("There is no field optOut: write is_subscribed, true or false.")},
		{"in another case", `{"email":"a@example.com","Is_Subscribed":false}`, edgetest.Failed("There is no field Is_Subscribed: write is_subscribed, true or false.")},
		{"newsletter", `{"email":"a@example.com","newsletter":[]}`, edgetest.Failed("There is no field newsletter: write newsletters, an array of objects with an id and a status.")},
		{"note too long", `{"email":"a@example.com","note":"` + strings.Repeat("x", 2001) + `"}`, edgetest.Failed("The note must be text of 2000 characters at most.")},
		{"subscribed a string", `{"email":"a@example.com","is_subscribed":"yes"}`, edgetest.Failed("The is_subscribed must be true or false.")},
		{"labels a string", `{"email":"a@example.com","labels":"VIP"}`, edgetest.Failed("The labels must be an array of strings.")},
		{"labels of numbers", `{"email":"a@example.com","labels":[1]}`, edgetest.Failed("The labels must be an array of strings.")},
		{"tier a number", `{"email":"a@example.com","tier_id":1}`, edgetest.Failed("The tier_id must be a string or null.")},
		{"newsletters of strings", `{"email":"a@example.com","newsletters":["n"]}`, edgetest.Failed("The newsletters must be an array of objects with an id and a status, both strings.")},
		{"newsletter without id", `{"email":"a@example.com","newsletters":[{"status":"active"}]}`, edgetest.Failed("Each of the newsletters needs an id.")},
		{"newsletter with ID", `{"email":"a@example.com","newsletters":[{"ID":"1"}]}`, edgetest.Failed("Each of the newsletters needs an id.")},
		{"newsletter status of null", `{"email":"a@example.com","newsletters":[{"id":"1","status":null}]}`, edgetest.Failed("The newsletters must be an array of objects with an id and a status, both strings.")},
		{"empty newsletter status", `{"email":"a@example.com","newsletters":[{"id":"1","status":""}]}`, edgetest.Failed("The newsletters must be an array of objects with an id and a status, both strings.")},
		{"101 newsletters", `{"email":"a@example.com","newsletters":[` + strings.Repeat(`{"id":"1"},`, 100) + `{"id":"1"}]}`, edgetest.Failed("There must be 100 newsletters at most.")},
		{"newsletter status", `{"email":"a@example.com","newsletters":[{"id":"1","status":"on"}]}`, edgetest.Failed("The status of a newsletter must be active or inactive.")},
		{"too large", `{"note":"` + strings.Repeat("x", 65536) + `"}`, exchange.JSON(413, `{"success":false,"message":"The request's body is too large.","code":"too_large"}`, "Connection", "close")},
	}
	for _, test := range tests {
		got := e.Call(edgetest.FormKey, "POST", "", test.body)
		if test.name == "too large" {
			got.Header["Connection"] = "close" // which the client takes away
		}
		if diff := cmp.Diff(test.want, edgetest.Plain(got)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	for _, request := range [][2]string{{"POST", ""}, {"PUT", "/b@example.com"}} {
		got := e.Call(edgetest.FormKey, request[0], request[1], `{"email":"b@example.com","plan, yearly":1,"Company":"x","café":{},"guid":"1","status":"paid","member_id":"1"}`)
		if ignored := got.Header["Lychgate-Ignored-Fields"]; got.Status != 200 || ignored != "Company, caf%C3%A9, plan%2C yearly" {
			t.Errorf("%s of fields that are not known: %v, want them in Lychgate-Ignored-Fields", request[0], got)
		}
	}
	if got := e.Do("POST", "/integration/members", "Authorization", "Bearer "+edgetest.FormKey, "Content-Type", "text/plain"); got.Body != edgetest.Failed("The Content-Type must be application/json.").Body {
		t.Errorf("wrong content type: %v", got)
	}
	if diff := cmp.Diff(exchange.JSON(405, `{"success":false,"message":"The method is not allowed here.","code":"method_not_allowed"}`, "Allow", "POST"), e.Call(edgetest.FormKey, "GET", "", "")); diff != "" {
		t.Errorf("list: %s", diff)
	}
	if diff := cmp.Diff(exchange.JSON(405, `{"success":false,"message":"The method is not allowed here.","code":"method_not_allowed"}`, "Allow", "GET, HEAD, PUT, DELETE"), e.Call(edgetest.FormKey, "PATCH", "/a@example.com", "{}")); diff != "" {
		t.Errorf("PATCH: %s", diff)
	}
	if got := e.Do("GET", "/integration/tiers", "Authorization", "Bearer "+edgetest.FormKey); got.Status != 404 || got.Body != `{"success":false,"message":"There is no such endpoint.","code":"no_endpoint"}` {
		t.Errorf("another endpoint: %v", got)
	}
	if got := e.Call(edgetest.FormKey, "GET", "/a@example.com", ""); got.Status != 404 {
		t.Errorf("a member was made: %v", got)
	}
}

func TestMembersCustomIDs(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "none"))
	ids := []string{"plain", "with/slash", "with+plus", "..", "ünïcode", "50%", "a@example.com"}
	for i, id := range ids {
		text, _ := json.Marshal(id)
		if got := e.Call(edgetest.CRMKey, "POST", "", fmt.Sprintf(`{"email":"m%d@example.com","member_id":%s}`, i, text)); !strings.Contains(got.Body, `"member_id":`+string(text)) {
			t.Errorf("%s: got %v, want body with %q", id, got, `"member_id":`+string(text))
		}
	}
	for path, want := range map[string]string{
		"/plain": "plain", "/with%2Fslash": "with/slash", "/with/slash": "with/slash", "/with+plus": "with+plus", "/with%2Bplus": "with+plus",
		"/..": "..", "/%2e%2e": "..", "/%C3%BCn%C3%AFcode": "ünïcode", "/50%25": "50%", "/a%40example.com": "a@example.com",
	} {
		text, _ := json.Marshal(want)
		if got := e.Call(edgetest.CRMKey, "GET", path, ""); !strings.Contains(got.Body, `"member_id":`+string(text)) {
			t.Errorf("%s: got %v, want body with %q", path, got, `"member_id":`+string(text))
		}
	}
	for _, path := range []string{"/with%20plus", "/m0@example.com", "/PLAIN", "/plain%00"} {
		if got := e.Call(edgetest.CRMKey, "GET", path, ""); got.Status != 404 {
			t.Errorf("%s: got %v, want status 404", path, got)
		}
	}
	dup := e.Call(edgetest.CRMKey, "POST", "", `{"email":"m0@example.com","member_id":"Dup 1","is_subscribed":true}`)
	if !strings.Contains(dup.Body, `"email":"Dup-1@members.invalid"`) || !strings.Contains(dup.Body, `"is_subscribed":false`) {
		t.Errorf("a duplicate: %v", dup)
	}
	if diff := cmp.Diff(edgetest.Failed("The email is already taken."), e.Call(edgetest.StrictKey, "POST", "", `{"email":"m0@example.com","member_id":"1"}`)); diff != "" {
		t.Errorf("e.call (-want +got):\n%s", diff)
	}
	if got := e.Call(edgetest.StrictKey, "POST", "", `{"email":"new@example.com","member_id":"1"}`); !strings.Contains(got.Body, `"is_subscribed":false`) {
		t.Errorf("subscribe_by_default off: %v", got)
	}
	if diff := cmp.Diff(edgetest.Failed("The member_id is required."), e.Call(edgetest.CRMKey, "POST", "", `{"email":"x@example.com"}`)); diff != "" {
		t.Errorf("e.call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(edgetest.Failed("The member_id is already taken."), e.Call(edgetest.CRMKey, "POST", "", `{"email":"x@example.com","member_id":"plain"}`)); diff != "" {
		t.Errorf("e.call (-want +got):\n%s", diff)
	}
	// One integration's identifiers are not another's.
	if got := e.Call(edgetest.StrictKey, "GET", "/plain", ""); got.Status != 404 {
		t.Errorf("another's identifier: %v", got)
	}
	// In Email mode the member is there, without an identifier.
	if got := e.Call(edgetest.FormKey, "GET", "/m0@example.com", ""); !strings.Contains(got.Body, `"member_id":null`) {
		t.Errorf("by email: %v", got)
	}
}

// The largest member takes no more of the disk than the pages say.
func TestMembersLargestRow(t *testing.T) {
	source := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(source, "none"))
	var labels, newsletters []string
	for i := range 100 {
		labels = append(labels, fmt.Sprintf("%03d%s", i, strings.Repeat("<", 188)))
		newsletters = append(newsletters, fmt.Sprintf(`{"id":"%03d%s"}`, i, strings.Repeat("<", 188)))
	}
	body := fmt.Sprintf(`{"email":"a@example.com","note":"%s","labels":["%s"],"newsletters":[%s]}`,
		strings.Repeat("\U0001f600", 2000), strings.Join(labels, `","`), strings.Join(newsletters, ","))
	if got := e.Call(edgetest.FormKey, "POST", "", body); got.Status != 200 || !strings.Contains(got.Body, `"success":true`) {
		t.Fatalf("got %v, want status 200, body with %s", got, `"success":true`)
	}
	db := edgetest.OpenDatabase(t, source)
	var row int
	const columns = "length(CAST(note AS BLOB)) + length(CAST(labels AS BLOB)) + length(CAST(newsletters AS BLOB)) + length(CAST(email AS BLOB))"
	if err := db.Read.QueryRow("SELECT " + columns + " FROM members").Scan(&row); err != nil || row > 130_000 {
		t.Errorf("%d bytes, %v", row, err)
	}
}

// Neither a reload nor a restart loses a member, and no member's data or key
// is in the log.
func TestMembersReload(t *testing.T) {
	store := edgetest.SQLiteStore(t)
	config := edgetest.MembersConfig(store, "none")
	e := edgetest.StartEdge(t, nil, config)
	for n := range 20 {
		body := fmt.Sprintf(`{"email":"secret%d@example.com"}`, n)
		if got := e.Call(edgetest.FormKey, "POST", "", body); got.Status != 200 {
			t.Fatalf("got %v, want status 200", got)
		}
		e.Load(config + fmt.Sprintf("# %d\n", n))
	}
	for n := range 20 {
		if got := e.Call(edgetest.FormKey, "GET", fmt.Sprintf("/secret%d@example.com", n), ""); got.Status != 200 {
			t.Errorf("member %d: %v", n, got)
		}
	}
	log := edgetest.ReadLog(t, e.LogFile)
	for _, private := range []string{"secret", edgetest.FormKey} {
		if lines := edgetest.LinesWith(log, private); lines != "" {
			t.Errorf("in the log: %s", lines)
		}
	}
}

// What is no HTTP is answered by the HTTP server itself, before any handler.
func TestMembersBadEscapes(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), "none"))
	for _, path := range []string{"%zz", "jane%40example.com%", "%4"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(e.Base, "http://"))
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /integration/members/%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, edgetest.FormKey)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("http.ReadResponse: %v", err)
		}
		body, err := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusBadRequest || string(body) != "400 Bad Request" || err != nil {
			t.Errorf(`%s: io.ReadAll = %d %q %v, want status 400, body "400 Bad Request", no error`, path, response.StatusCode, body, err)
		}
	}
}
