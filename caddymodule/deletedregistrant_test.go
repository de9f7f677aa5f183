package caddymodule_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/members"
)

// When staff delete a member in Ghost, the member's email and name go from the registrations too,
// with the webhook event of the deletion. That somebody is registered stays.
func TestDeletedRegistrant(t *testing.T) {
	url, key := ghosttest.Real(t)
	source := sqliteStore(t)
	config := eventsConfig(source, url, key, "6000 1m")
	config = strings.Replace(config, "webhooks off", "webhooks http://127.0.0.1:{{port}}", 1)
	config = strings.Replace(config, "staff_desk\n", "staff_desk\nmembers_api\n", 1)
	h := newEvents(t, startEdge(t, nil, config), key)
	store := openStore(t, source)
	wait.Until(t, func() string {
		if w, err := store.FindWebhook(t.Context(), "daily"); err != nil || w.RegisteredAt.IsZero() {
			return fmt.Sprint("Ghost was not asked to send events: ", err)
		}
		return ""
	})
	draft, _ := h.events(201, "POST", "", h.eventBody(map[string]any{"name": "Deleted " + h.unique, "event_date": "2031-05-01", "speaker": "Ada", "access": "free"}))
	published, _ := h.events(200, "POST", "/"+draft.ID+"/publish", "")
	registration := "/ghost/lychgate/events/" + published.Values["slug"].(string) + "/registration"
	emails := []string{"jane" + h.unique + "@example.com", "john" + h.unique + "@example.com"}
	for _, email := range emails {
		if got := h.do("PUT", registration, "Cookie", h.signInReader(email, false), "Sec-Fetch-Site", "same-origin"); got.Status != 200 {
			t.Fatalf("registering: %v", got)
		}
	}
	list := func() (body string) {
		return h.do("GET", "/ghost/lychgate/desk/events/"+draft.ID+"/registrations", "Cookie", h.owner, "Origin", h.base).Body
	}
	if got := list(); strings.Count(got, h.unique+"@example.com") != 2 {
		t.Fatalf("the registrations are %s, want both", got)
	}
	wait.Until(t, func() string { // for Ghost's webhook event
		_, err := store.Find(t.Context(), members.Key{Site: "daily", Email: emails[0]})
		if err != nil {
			return "the edge does not know the member yet: " + err.Error()
		}
		return ""
	})
	h.ghost("DELETE", "/members/"+h.ids("members", "email:'"+emails[0]+"'")[0]+"/", "")
	wait.Until(t, func() string {
		if got := list(); strings.Contains(got, emails[0]) || !strings.Contains(got, emails[1]) || !strings.Contains(got, `"registered":2,`) {
			return "the registrations are " + got + ", want the one without an email, and both counted"
		}
		return ""
	})
}
