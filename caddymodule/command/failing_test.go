package command_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// An operator sees on the command line which sites are in trouble, whether or not Caddy runs: those of the
// configuration and those in the store, those with a label alone if asked, and not what remains of sites that nobody serves.
func TestSiteListFailing(t *testing.T) {
	folder := t.TempDir()
	const note = "What an edge alone knows, hosts without a certificate, paused writes and webhook events that do not arrive, is not included: no Caddy with Lychgate runs on this machine at the admin address of this configuration.\n"
	writeStoredConfig(t, folder, "secret "+firstSecret)
	follow(t, folder, []command{
		{"site add weekly --hosts weekly.example --platform ghost --url http://127.0.0.1:2368 --admin-key - --label acme", ghostKey, ran{"Site weekly is added, and live at weekly.example within two seconds.\n", "", 0}},
		{"site list --failing", "", ran{"No site is in trouble.\n", note, 0}},
	})
	db := edgetest.OpenDatabase(t, "sqlite "+filepath.Join(folder, "lychgate.db"))
	if _, err := contacts.NewSQL(t.Context(), db); err != nil {
		t.Fatalf("contacts.NewSQL: %v", err)
	}
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC).UnixMilli()
	for site, responded := range map[string]int64{"daily": at - 1000, "weekly": 0, "gone": 0} {
		const add = `INSERT INTO contacts (site, outcome, since, problem, responded_at, asked_at) VALUES ($1, 'rejected', $2, 'Ghost answers 401', $3, $2)`
		dbtest.Exec(t, db, add, site, at, responded)
	}
	follow(t, folder, []command{
		{"site list --failing", "", ran{"NAME    STATE         SINCE                    LAST CONTACT             PROBLEM\n" +
			"daily   key_rejected  TIME  " + "TIME  Ghost answers 401\n" +
			"weekly  key_rejected  TIME  unknown                  Ghost answers 401\n", note, 0}},
		{"site list --failing --label acme", "", ran{"NAME    STATE         SINCE                    LAST CONTACT  PROBLEM\n" +
			"weekly  key_rejected  TIME  unknown       Ghost answers 401\n", note, 0}},
		{"site list --failing --label beta", "", ran{"No site is in trouble.\n", note, 0}},
		{"site list --failing --label acme --json", "", ran{`{"sites":[` + "\n" + `{"name":"weekly","reasons":[{"state":"key_rejected","since":"TIME","problem":"Ghost answers 401"}]}]}` + "\n", note, 0}},
	})
}
