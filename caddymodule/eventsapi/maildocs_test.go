package eventsapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
	"github.com/lychgate/caddy-lychgate/internal/test/checkout"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

// mailExample is the Caddyfile that docs/mail.md prints, and what it prints of it in JSON.
func mailExample(t *testing.T) (caddyfile string, asJSON []string) {
	t.Helper()
	page, err := os.ReadFile(checkout.Path("docs/mail.md"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	blocks := regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/mail.md has %d Caddyfiles, want one", len(blocks))
	}
	for _, found := range regexp.MustCompile("`\"mail\": (\\{.*?\"\\})`").FindAllSubmatch(page, -1) {
		asJSON = append(asJSON, string(found[1]))
	}
	return string(blocks[0][1]), asJSON
}

// The Caddyfile of docs/mail.md is the JSON that it says.
func TestDocumentedMailInJSON(t *testing.T) {
	caddyfile, want := mailExample(t)
	adapted, err := inprocess.Adapt(caddyfile)
	if err != nil {
		t.Fatalf("inprocess.Adapt: %v", err)
	}
	var got struct {
		Apps struct {
			Lychgate struct {
				Mail  any
				Sites map[string]struct{ Mail any }
			}
		}
	}
	if err := json.Unmarshal(adapted, &got); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	read := make([]any, len(want))
	for i, text := range want {
		if err := json.Unmarshal([]byte(text), &read[i]); err != nil {
			t.Errorf("docs/mail.md has %s: %v", text, err)
		}
	}
	if diff := cmp.Diff(read, []any{got.Apps.Lychgate.Mail, got.Apps.Lychgate.Sites["archive"].Mail}); diff != "" {
		t.Errorf("mail in JSON, of all sites and of archive (-docs +adapted):\n%s", diff)
	}
}

// The sites of the Caddyfile of docs/mail.md send a registrant their mail by the server and from the address that it says, and archive
// sends none.
func TestDocumentedMail(t *testing.T) {
	caddyfile, _ := mailExample(t)
	servers := map[string]*smtptest.Server{}
	for name, user := range map[string]string{"SMTP_URL": "daily", "WEEKLY_SMTP_URL": "weekly"} {
		servers[name] = smtptest.Start(t, smtptest.Options{User: user, Password: "p@ss/word"})
		t.Setenv(name, "smtp://"+user+":p%40ss%2Fword@"+servers[name].Address)
	}
	store := edgetest.SQLiteStore(t)
	caddyfile = strings.Replace(caddyfile, "{\n\tlychgate {", "{\n\t{{global}}\n\tlychgate {\n\t\tstore "+store, 1)
	platform := "platform " + edgetest.GhostPlatform(startMembersOnly(t), "id:"+strings.Repeat("0", 64), "off")
	caddyfile = regexp.MustCompile(`(?m)^\s*hosts .*$`).ReplaceAllString(caddyfile, "$0\n"+platform)
	e := edgetest.StartEdge(t, nil, caddyfile+"http://:{{port}} {\n\tevents_api\n}\n")
	db := edgetest.OpenDatabase(t, store)
	hosts := []string{"archive.example.org", "news.example.com", "weekly.example.org"}
	for i, site := range []string{"archive", "daily", "weekly"} {
		if err := eventstest.Fill(t.Context(), db, site, 1, 500); err != nil {
			t.Fatalf("eventstest.Fill: %v", err)
		}
		dbtest.Exec(t, db, `UPDATE events SET content = $1, shape = '{"fields":["name","access","event_date"]}' WHERE site = $2`, `{"name":"Party of `+site+`","access":"free","event_date":"2088-05-01"}`, site)
		got := e.Do("PUT", "/ghost/lychgate/events/event-0/registration", "Host", hosts[i], "Origin", "http://"+hosts[i], "Sec-Fetch-Site", "same-origin",
			"Cookie", fmt.Sprintf("ghost-members-ssr=%d; ghost-members-ssr.sig=x", i))
		if got.Status != 200 {
			t.Fatalf("registering at %s: %v, want 200", site, got)
		}
	}
	wantMails(t, servers["SMTP_URL"], `"Jane" <jane1@example.com>: You are registered: Party of daily`)
	wantMails(t, servers["WEEKLY_SMTP_URL"], `"Jane" <jane2@example.com>: You are registered: Party of weekly`)
	var got [][2]string
	for _, name := range []string{"SMTP_URL", "WEEKLY_SMTP_URL"} {
		m := servers[name].Mails()[0]
		got = append(got, [2]string{m.User, readMail(t, m)["From"]})
	}
	if diff := cmp.Diff([][2]string{{"daily", `"The Daily" <events@example.com>`}, {"weekly", "<events@weekly.example.org>"}}, got); diff != "" {
		t.Errorf("who signed in, and whom the mails are from (-want +got):\n%s", diff)
	}
}
