package admin_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// postponePending has all that is pending in a store due in an hour, later than any probe looks.
func postponePending(t *testing.T, kind database.Kind, source string, want int64) {
	t.Helper()
	db := edgetest.OpenDatabase(t, string(kind)+" "+source)
	result, err := db.Write.ExecContext(t.Context(), "UPDATE members SET next_attempt = $1 WHERE applied < version", time.Now().Add(time.Hour).UnixMilli())
	if err != nil {
		t.Fatalf("postponing: %v", err)
	}
	if n, err := result.RowsAffected(); n != want || err != nil {
		t.Fatalf("got %d pending writes, %v, want %d", n, err, want)
	}
}

// An operator who writes the right key sees what waited in Ghost at once, from whichever edge, and
// not when the next attempt of each write is due.
func TestRightKeySendsWhatWaits(t *testing.T) {
	url, key := ghosttest.Real(t)
	source := dbtest.PostgresSource(t)
	edges := []*edgetest.StoredEdge{edgetest.StartStored(t, "postgres "+source, "secret "+edgetest.FirstSecret), edgetest.StartStored(t, "postgres "+source, "secret "+edgetest.FirstSecret)}
	one := edges[0]
	one.Must(http.StatusCreated, "POST", "", fmt.Sprintf(`{"name":"daily","hosts":["daily.example"],"platform":{"kind":"ghost","url":%q,"admin_key":%q,"webhooks":"off","reconcile":"off"}}`, url, fakeAdminKey))
	crm := "Bearer " + one.AddKey("daily")
	wait.Until(t, func() string {
		if !edges[1].Serves("daily.example") {
			return "the second edge does not serve the site"
		}
		return ""
	})
	domain := fmt.Sprintf("waits-%d.example.com", time.Now().UnixNano())
	const writes = 10
	for i := range writes {
		status, text := edges[i%2].Send("POST", "daily.example", "/integration/members", fmt.Sprintf(`{"email":"m%d@%s"}`, i, domain), "Authorization", crm)
		if status != http.StatusOK || !strings.Contains(text, `"success":true`) {
			t.Fatalf("a write with the wrong key of Ghost: got %d %s, want 200 and success", status, text)
		}
	}
	postponePending(t, database.Postgres, source, writes)

	command := exec.Command(caddytest.Build(t), "lychgate", "site", "update", "daily", "--admin-key", "-", "--config", filepath.Join(one.Folder, "Caddyfile"))
	command.Stdin = strings.NewReader(key + "\n")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("site update: %v: %s", err, output)
	}
	wait.Until(t, func() string {
		for i := range writes {
			status, text := edges[i%2].Get("daily.example", fmt.Sprintf("/integration/members/m%d@%s", i, domain), "Authorization", crm)
			if status != http.StatusOK {
				return text
			}
		}
		if status, text := one.AdminGet("/lychgate/pending?site=daily"); status != http.StatusOK || !strings.Contains(text, `"members":0`) {
			return text
		}
		return ""
	})
}

// So does one who writes another address into the Caddyfile and reloads it, or restarts Caddy, as
// for another key in its environment.
func TestAnotherAddressSendsWhatWaits(t *testing.T) {
	for name, isRestart := range map[string]bool{"reload": false, "restart": true} {
		t.Run(name, func(t *testing.T) { testAnotherAddress(t, isRestart) })
	}
}

func testAnotherAddress(t *testing.T, isRestart bool) {
	url, key := ghosttest.Real(t)
	store := edgetest.SQLiteStore(t)
	config := func(url string) string {
		return "{\n{{global}}\n{{admin}}\nlychgate {\nstore " + store + "\nsite daily {\nhosts localhost\nplatform ghost " + url + " {\nadmin_key " + key + "\nwebhooks off\nreconcile off\n}\n" +
			"integration form {\nkey " + edgetest.FormKey + "\n}\n}\n}\n}\nhttp://:{{port}} {\nmembers_api\n}\n"
	}
	e := edgetest.StartEdge(t, nil, config("http://127.0.0.1:"+freeport.New(t)))
	email := fmt.Sprintf("m@waits-%d.example.com", time.Now().UnixNano())
	if got := e.Call(edgetest.FormKey, "POST", "", `{"email":"`+email+`"}`); got.Header["Lychgate-Sync"] != "queued" {
		t.Fatalf("a write while Ghost is away: got %v, want a queued one", got)
	}
	wait.Until(t, func() string { // no attempt is under way that would set its time
		if status, text := edgetest.AdminOf(t, e.AdminSocket)("GET", "/lychgate/pending?site=daily"); !strings.Contains(text, `"members":1`) {
			return fmt.Sprint(status, text)
		}
		return ""
	})
	postponePending(t, database.SQLite, strings.TrimPrefix(store, "sqlite "), 1)
	if isRestart {
		e.Load("{\n{{global}}\n{{admin}}\n}\n")
	}
	e.Load(config(url))
	wait.Until(t, func() string {
		_, text := edgetest.AdminOf(t, e.AdminSocket)("GET", "/lychgate/pending?site=daily")
		if !strings.Contains(text, `"members":0`) {
			return text
		}
		return ""
	})
}
