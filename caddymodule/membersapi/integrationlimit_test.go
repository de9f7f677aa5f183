package membersapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// An integration may send more requests than others, or fewer. Another limit holds from
// the reload on, and what was sent before still counts.
func TestIntegrationLimit(t *testing.T) {
	config := func(store, limit string) string {
		return edgetest.MembersSites{Store: store, Platform: "none", Form: limit, Limit: "6 1h"}.Caddyfile()
	}
	store := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, config(store, "limit 4 1h"))
	answered := func(key string) (n int) {
		for range 12 {
			if got := e.Call(key, "GET", "/a@example.com", ""); got.Status == http.StatusNotFound {
				n++
			} else if got.Status != http.StatusTooManyRequests || got.Header["Retry-After"] == "" {
				t.Fatalf("got %v, want status 429, a Retry-After", got)
			}
		}
		return n
	}
	got := []int{answered(edgetest.FormKey), answered(edgetest.CRMKey)}
	for _, limit := range []string{"limit 9 1h", "limit 3 1h", "", "limit 9 2h", "limit 10 2h"} {
		e.Load(config(store, limit))
		got = append(got, answered(edgetest.FormKey), answered(edgetest.CRMKey))
	}
	if diff := cmp.Diff([]int{4, 6, 5, 0, 0, 0, 3, 0, 3, 0, 1, 0}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

// The limit of an integration in the store holds at once, without a reload.
func TestStoredIntegrationLimit(t *testing.T) {
	t.Parallel()
	e := edgetest.StartStored(t, edgetest.SQLiteStore(t))
	e.AddNone("daily", "news.example.com")
	var made struct{ Key string }
	text := e.Must(http.StatusCreated, "POST", "/daily/integrations", `{"name":"crm","limit":{"requests":2,"window":"1h"}}`)
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	answered := func() (n int) {
		for range 10 {
			if status, _ := e.Get("news.example.com", "/integration/members/a@example.com", "Authorization", "Bearer "+made.Key); status == http.StatusNotFound {
				n++
			}
		}
		return n
	}
	got := []int{answered()}
	for _, limit := range []string{`{"requests":5,"window":"1h"}`, `{"requests":1,"window":"1h"}`, "null"} {
		e.Must(http.StatusNoContent, "PATCH", "/daily/integrations/crm", `{"limit":`+limit+`}`)
		got = append(got, answered())
	}
	if diff := cmp.Diff([]int{2, 3, 0, 10}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}
