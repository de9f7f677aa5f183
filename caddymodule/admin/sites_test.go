package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Sites with many themes make a page end early. By its next, each site is listed once.
func TestLargeSitesAreListedInParts(t *testing.T) {
	store, err := sites.NewSQL(t.Context(), dbtest.SQLite(t), nil)
	if err != nil {
		t.Fatalf("sites.NewSQL: %v", err)
	}
	themes := make(map[string]any)
	for n := range 100 {
		themes[fmt.Sprintf("theme%d", n)] = map[string]any{"repository": map[string]string{"url": "https://git.example.com/" + strings.Repeat("a", 1000) + ".git"}}
	}
	settings, err := json.Marshal(map[string]any{"platform": map[string]string{"kind": "none"}, "themes": themes})
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	var want []string
	for n := range 3*listPart - 1 {
		name := fmt.Sprintf("site%03d", n)
		want = append(want, name)
		if err := store.Add(t.Context(), sites.Site{Name: name, Hosts: []string{name + ".example.com"}, Settings: settings}); err != nil {
			t.Fatalf("store.Add: %v", err)
		}
	}
	e := siteEdit{Editor: &config.Editor{Config: new(config.Config), Store: store}}
	var got []string
	pages := 0
	for next := sitesPath + "?limit=1000"; next != ""; pages++ {
		w := httptest.NewRecorder()
		if err := e.serve(w, httptest.NewRequest(http.MethodGet, next, nil), nil); err != nil {
			t.Fatalf("serve: %v", err)
		}
		if n := w.Body.Len(); n > listBytes+200<<10 {
			t.Errorf("%s: %d bytes, want no more than a site above %d", next, n, listBytes)
		}
		var page struct {
			Sites []struct{ Name string }
			Next  string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatalf("%s: %v", next, err)
		}
		for _, site := range page.Sites {
			got = append(got, site.Name)
		}
		next = page.Next
		if u, err := url.Parse(next); err != nil || next != "" && u.Query().Get("limit") != "1000" {
			t.Errorf("next is %q, want the same limit", next)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || pages < 2 {
		t.Errorf("in %d pages (-want +got):\n%s", pages, diff)
	}
}
