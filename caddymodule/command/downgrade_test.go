package command_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A store that an older Lychgate refuses is taken back by a command, while nothing uses it.
func TestDowngrade(t *testing.T) {
	folder, _, _ := siteFolder(t)
	setAdmin(t, folder, "off")
	no := func(text string) ran { return ran{"", "Error: " + text + "\n", 1} }
	const known = ` is not <tables>=<version>, such as members=7: known are audit, contacts, curation, events, history, members, sites, themes, work`
	for _, test := range []struct {
		args string
		want ran
	}{
		{"members", no(`"members"` + known)},
		{"members=x", no(`"members=x"` + known)},
		{"pages=1", no(`"pages=1"` + known)},
		{"members=13", no("the tables of members have version 13, so write one from 1 to 12")},
		{"members=0", no(`"members=0"` + known)},
		{"members=7 members=8", no(`"members=8"` + known)},
		{"members=12 events=1", no("the tables of events have version 0, and there is none before it")},
		{"members=12", ran{"The tables of members have version 12 now, not 13.\n", "", 0}},
		{"members=7", ran{"The tables of members have version 7 now, not 12.\n", "", 0}},
	} {
		if diff := cmp.Diff(test.want, lychgate(t, folder, append([]string{"downgrade"}, strings.Fields(test.args)...)...)); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", test.args, diff)
		}
	}
	if got := lychgate(t, folder, "integration", "list", "--site", "daily"); got.Code != 0 { // which brings the tables up to date
		t.Errorf("after that: %+v, want no error", got)
	}
}

// It is not known whether a Caddy that does not respond rightly uses the store.
func TestDowngradeBesideACaddy(t *testing.T) {
	folder, _, _ := siteFolder(t)
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer admin.Close()
	setAdmin(t, folder, admin.Listener.Addr().String())
	got := lychgate(t, folder, "downgrade", "members=7")
	if want := "Error: stop all edges first: one may run on this machine: "; got.Code != 1 || !strings.HasPrefix(got.Err, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// setAdmin sets the address of the admin API in the Caddyfile of a siteFolder.
func setAdmin(t *testing.T, folder, address string) {
	t.Helper()
	writeFile(t, folder, "Caddyfile", twoSites{global: "admin " + address, store: "sqlite " + filepath.Join(folder, "lychgate.db")}.caddyfile())
}
