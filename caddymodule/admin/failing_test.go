package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// rejectingGhost responds to everything as a Ghost does that does not know the key.
func rejectingGhost(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		w.Write([]byte(`{"errors":[{"message":"Unknown Admin API Key","type":"UnauthorizedError","code":"UNKNOWN_ADMIN_API_KEY"}]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// shownFailing is a page of sites in trouble, as JSON has it.
type shownFailing struct {
	Sites []struct {
		Name    string
		Reasons []struct{ State, Problem string }
	}
	Next string
}

// failing asks for the sites in a state: each with its reasons.
func (a *sitesAdmin) failing(query string) (list []string, next string) {
	a.T.Helper()
	got, err := a.send("GET", "/lychgate/sites?"+query, "")
	var page shownFailing
	if err == nil {
		err = json.Unmarshal([]byte(got.Body), &page)
	}
	if err != nil || got.Status != 200 {
		a.T.Fatalf("%s: %v, %v", query, got, err)
	}
	for _, site := range page.Sites {
		for _, reason := range site.Reasons {
			list = append(list, site.Name+": "+reason.State)
		}
	}
	return list, page.Next
}

// An operator of many sites asks which of them are in trouble, and finds the rejected key of a site that
// nobody writes to, and the Ghost that is away, and no other site.
func TestFailingSites(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig("sqlite "+t.TempDir()+"/lychgate.db", sealingSecret))
	rejecting := strings.ReplaceAll(onGhost9, "http://127.0.0.1:9", rejectingGhost(t))
	a.add(`[{"name":"away","hosts":["away.example.com"],` + onGhost9 + `},{"name":"rejected","hosts":["rejected.example.com"],` + rejecting + `},
		{"name":"fine","hosts":["fine.example.com"],` + noGhost + `}]`)
	want := []string{"away: platform_away", "rejected: key_rejected"}
	wait.Until(t, func() string {
		list, _ := a.failing("state=failing")
		return cmp.Diff(want, list)
	})
	trouble := regexp.MustCompile(`(?m)^lychgate_sites?_(failing|key_rejected_age|platform_away_age|pending_age)[^ ]*`)
	wait.Until(t, func() string { // a scrape leaves out what the store does not say in time
		metrics, err := a.send("GET", "/metrics", "")
		if err != nil {
			return err.Error()
		}
		series := trouble.FindAllString(metrics.Body, -1)
		slices.Sort(series)
		return cmp.Diff([]string{
			`lychgate_site_key_rejected_age_seconds{site="rejected"}`, `lychgate_site_platform_away_age_seconds{site="away"}`,
			`lychgate_sites_failing{state="key_rejected"}`, `lychgate_sites_failing{state="platform_away"}`,
		}, series)
	})
	for query, want := range map[string][]string{
		"state=key_rejected":                want[1:],
		"state=platform_away":               want[:1],
		"state=writes_pending":              nil,
		"state=failing&after=away":          want[1:],
		"state=failing&after=away&limit=1":  want[1:],
		"state=failing&after=rejected":      nil,
		"state=theme_unreadable&limit=1000": nil,
	} {
		list, next := a.failing(query)
		if diff := cmp.Diff(want, list); diff != "" || next != "" {
			t.Errorf("%s: (-want +got):\n%s, next %q, want none", query, diff, next)
		}
	}
	list, next := a.failing("state=failing&limit=1")
	if diff := cmp.Diff(want[:1], list); diff != "" || next != "/lychgate/sites?after=away&limit=1&state=failing" {
		t.Errorf("the first page: (-want +got):\n%s, next %q", diff, next)
	}
	a.follow(t, []sitesStep{
		{"the whole answer", "GET", "/lychgate/sites?state=key_rejected", "", given(200, `{"sites":[{"name":"rejected","reasons":[{"state":"key_rejected",`+
			`"since":"TIME","problem":"Ghost answers 401 UnauthorizedError UNKNOWN_ADMIN_API_KEY Unknown Admin API Key"}]}]}`)},
		{"nothing", "GET", "/lychgate/sites?state=writes_paused", "", given(200, `{"sites":[]}`)},
		{"without the body", "HEAD", "/lychgate/sites?state=failing", "", without(given(200, ""))},
		{"another state", "GET", "/lychgate/sites?state=broken", "", refused(400, `state "broken": write failing, or one of key_rejected, platform_away, `+
			`keys_locked, certificate_failing, writes_pending, writes_paused, webhook_missing, manifest_findings, theme_unreadable`)},
	})
}

// What an edge alone knows says so, beside what is so for the fleet: the keys that it cannot open, and
// the writes that are pending for too long because of that.
func TestFailingAtThisEdge(t *testing.T) {
	file := t.TempDir() + "/lychgate.db"
	a := startSitesAdmin(t, sitesConfig("sqlite "+file, sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + onGhost9 + `}`)
	db := edgetest.OpenDatabase(t, "sqlite "+file)
	const addMember = `INSERT INTO members (guid, site, email, email_key, name, note, subscribed, labels, newsletters, status, created_at, updated_at,
		version, applied, deleted, sent_email, sent_key, sent_at, unanswered_at, attempts, next_attempt, problem, lease_owner, lease_until)
		VALUES ('g', 'daily', 'a@b.c', 'a@b.c', '', '', TRUE, '[]', 'null', 'free', 1, 1, 2, 1, FALSE, '', '', 0, 0, 0, 1, '', '', 0)`
	dbtest.Exec(t, db, addMember)
	a.Load(sitesConfig("sqlite "+file, "another-secret-0123456789abcdef0123456789"))
	a.follow(t, []sitesStep{
		{"locked", "GET", "/lychgate/sites?state=keys_locked", "", given(200, `{"sites":[{"name":"daily","reasons":[{"state":"keys_locked",`+
			`"problem":"it was sealed with another secret","this_edge":true}]}]}`)},
		{"pending", "GET", "/lychgate/sites?state=writes_pending", "", given(200, `{"sites":[{"name":"daily","reasons":[{"state":"writes_pending",`+
			`"since":"TIME","pending":1}]}]}`)},
	})
}
