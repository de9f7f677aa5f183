package eventsapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// When staff delete a member in Ghost, the member's email and name go from the registrations too,
// with the webhook event of the deletion. That somebody is registered stays.
func TestDeletedRegistrant(t *testing.T) {
	url, key := ghosttest.Real(t)
	source := edgetest.SQLiteStore(t)
	config := edgetest.EventsConfig(source, url, key, "6000 1m")
	config = strings.Replace(config, "webhooks off", "webhooks http://127.0.0.1:{{port}}", 1)
	config = strings.Replace(config, "staff_desk\n", "staff_desk\nmembers_api\n", 1)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, config), key)
	store := edgetest.OpenStore(t, source)
	wait.Until(t, func() string {
		if w, err := store.FindWebhook(t.Context(), "daily"); err != nil || w.RegisteredAt.IsZero() {
			return fmt.Sprint("Ghost was not asked to send events: ", err)
		}
		return ""
	})
	draft, _ := h.Events(201, "POST", "", h.EventBody(map[string]any{"name": "Deleted " + h.Unique, "event_date": "2031-05-01", "speaker": "Ada", "access": "free"}))
	published, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", "")
	registration := "/ghost/lychgate/events/" + published.Values["slug"].(string) + "/registration"
	emails := []string{"jane" + h.Unique + "@example.com", "john" + h.Unique + "@example.com"}
	for _, email := range emails {
		if got := h.Do("PUT", registration, "Cookie", signInReader(h, email, false), "Sec-Fetch-Site", "same-origin"); got.Status != 200 {
			t.Fatalf("registering: %v", got)
		}
	}
	list := func() (body string) {
		return h.Do("GET", "/ghost/lychgate/desk/events/"+draft.ID+"/registrations", "Cookie", h.Owner, "Origin", h.Base).Body
	}
	if got := list(); strings.Count(got, h.Unique+"@example.com") != 2 {
		t.Fatalf("the registrations are %s, want both", got)
	}
	wait.Until(t, func() string { // for Ghost's webhook event
		_, err := store.Find(t.Context(), members.Key{Site: "daily", Email: emails[0]})
		if err != nil {
			return "the edge does not know the member yet: " + err.Error()
		}
		return ""
	})
	h.Ghost("DELETE", "/members/"+h.IDs("members", "email:'"+emails[0]+"'")[0]+"/", "")
	wait.Until(t, func() string {
		if got := list(); strings.Contains(got, emails[0]) || !strings.Contains(got, emails[1]) || !strings.Contains(got, `"registered":2,`) {
			return "the registrations are " + got + ", want the one without an email, and both counted"
		}
		return ""
	})
}
