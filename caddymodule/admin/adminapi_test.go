package admin_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// What Ghost does not have yet is visible, with the reason and without anybody's
// email, and can be tried at once.
func TestAdminAPI(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersSites{
		Global: "{{admin}}", Store: edgetest.SQLiteStore(t), Before: "handle /metrics {\n metrics\n}",
		Platform: "ghost http://127.0.0.1:" + freeport.New(t) + " {\n admin_key 0123456789abcdef01234567:" + strings.Repeat("0f", 32) + "\n}",
	}.Caddyfile())

	admin := edgetest.AdminOf(t, e.AdminSocket)
	if _, text := admin("GET", "/lychgate/members/behind"); text != `{"daily":{"behind":0,"members":[]},"other":{"behind":0,"members":[]}}`+"\n" {
		t.Errorf("nothing is behind: %s", text)
	}
	got := e.Call(edgetest.FormKey, "POST", "", `{"email":"jane@example.com"}`)
	if got.Header["Lychgate-Sync"] != "queued" || !strings.Contains(got.Body, `"success":true`) {
		t.Fatalf("with Ghost away: %v", got)
	}
	var behind map[string]struct {
		Behind  int
		Members []struct {
			GUID              string
			Version, Attempts int64
			Problem           string
			NextAttempt       time.Time `json:"next_attempt"`
		}
	}
	_, text := admin("GET", "/lychgate/members/behind")
	if err := json.Unmarshal([]byte(text), &behind); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	daily := behind["daily"]
	if daily.Behind != 1 || len(daily.Members) != 1 || daily.Members[0].Version != 1 || daily.Members[0].Attempts < 1 ||
		!strings.Contains(daily.Members[0].Problem, "connection refused") || daily.Members[0].NextAttempt.IsZero() {
		t.Errorf("behind: %s", text)
	}
	if got := e.Call(edgetest.FormKey, "GET", "/unknown@example.com", ""); !strings.Contains(got.Body, "the publishing platform does not answer") {
		t.Errorf("a read through with Ghost away: %v", got)
	}
	log := edgetest.ReadLog(t, e.LogFile)
	if !strings.Contains(log, "cannot fetch member from platform") {
		t.Errorf("the log is %s, want a line that a member could not be fetched", log)
	}
	for _, email := range []string{"unknown", "jane"} {
		if lines := edgetest.LinesWith(log, email); lines != "" {
			t.Errorf("an email is in the log: %s", lines)
		}
	}
	if strings.Contains(text, "jane") {
		t.Errorf("an email is shown: %s", text)
	}
	_, text = admin("GET", "/lychgate/pending")
	var all map[string]struct {
		Pending map[string]int
		Items   []struct{ Kind, Key, Title, Reason string }
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	if of := all["daily"]; of.Pending["members"] != 1 || len(of.Items) != 1 || of.Items[0].Kind != "members" || of.Items[0].Key != daily.Members[0].GUID ||
		!strings.Contains(of.Items[0].Reason, "connection refused") || strings.Contains(text, "jane") {
		t.Errorf("pending: %s", text)
	}
	want := map[string]string{
		`lychgate_pending{kind="members",site="daily"}`:                                     "1",
		`lychgate_members_behind{site="daily"}`:                                             "1",
		`lychgate_members_requests_total{operation="create",outcome="queued",site="daily"}`: "1",
		`lychgate_members_requests_total{operation="get",outcome="rejected",site="daily"}`:  "1",
	}
	wait.Until(t, func() string { // a scrape leaves out what the store does not say in time
		got := make(map[string]string)
		for series := range want {
			got[series] = e.Metric(series)
		}
		return cmp.Diff(want, got)
	})
	if status, text := admin("POST", "/lychgate/members/try"); status != 200 || text != `{"daily":1,"other":0}`+"\n" {
		t.Errorf("try: %d %s", status, text)
	}
	if status, text := admin("GET", "/lychgate/members/try"); status != 405 || !regexp.MustCompile(`"error":"use POST"`).MatchString(text) {
		t.Errorf("GET try: %d %s", status, text)
	}
}

// After reloads the admin API shows the configuration that runs, or none.
func TestAdminAPIAfterReloads(t *testing.T) {
	site := edgetest.MembersSites{Global: "{{admin}}", Store: edgetest.SQLiteStore(t), Platform: "none"}
	config := site.Caddyfile()
	site.API = "respond ok"
	e := edgetest.StartEdge(t, nil, config)
	behind := func() string {
		_, text := edgetest.AdminOf(t, e.AdminSocket)("GET", "/lychgate/members/behind")
		return strings.TrimSpace(text)
	}
	for _, step := range []struct{ config, want string }{
		{config + "# again", `{"daily":{"behind":0,"members":[]},"other":{"behind":0,"members":[]}}`},
		{site.Caddyfile(), `{}`},
		{config, `{"daily":{"behind":0,"members":[]},"other":{"behind":0,"members":[]}}`},
	} {
		e.Load(step.config)
		if got := behind(); got != step.want {
			t.Errorf("%s, want %s", got, step.want)
		}
	}
}
