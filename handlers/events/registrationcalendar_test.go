package events

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Only a reader who is registered gets the calendar file with the online link, and no cache keeps
// it.
func TestRegistrationCalendar(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"The party","access":"free","event_date":"2031-05-01","platform_url":"https://example.com/room"}`)
	const file, jane = "/events/party/registration.ics", "session=jane"
	refused := func(message string) string { return `{"message":"` + message + `"}` }
	for _, test := range []struct {
		name, method, target, cookie string
		want                         told
	}{
		{"a guest", "GET", file, "", told{401, api.Unauthorized, refused("Register with your email address.")}},
		{"a member who is not registered", "GET", file, jane, told{403, api.Forbidden, refused("You can register for this event.")}},
		{"an event that is none", "GET", "/events/ball/registration.ics", jane, told{404, api.NotFound, refused("There is no such event. Somebody may have deleted it.")}},
		{"another method", "PUT", file, jane, told{405, api.Other, refused("The method is not allowed here.")}},
	} {
		if got, header := d.ask(test.method, test.target, test.cookie); !cmp.Equal(test.want, got) || strings.Contains(header.Get("Content-Type"), "calendar") {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
	if got, _ := d.ask("PUT", "/events/party/registration", jane); got.Status != http.StatusOK {
		t.Fatalf("registering: %+v, want 200", got)
	}
	for _, method := range []string{"GET", "HEAD"} {
		got, header := d.ask(method, file, jane)
		want := map[string]string{
			"Cache-Control": "private, no-store", "Content-Type": "text/calendar; charset=utf-8", "Content-Disposition": `attachment; filename="The party.ics"`,
			"Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "", "Etag": "",
		}
		has := make(map[string]string)
		for name := range want {
			has[name] = header.Get(name)
		}
		if diff := cmp.Diff(want, has); diff != "" {
			t.Errorf("%s: headers (-want +got): %s", method, diff)
		}
		hasLink := strings.Contains(got.Body, "CONFERENCE;VALUE=URI:https://example.com/room\r\n")
		if got.Status != http.StatusOK || got.Outcome != api.Done || hasLink != (method == "GET") {
			t.Errorf("%s: %+v, want 200 and the link", method, got)
		}
	}
	if got, _ := d.ask("GET", file, "session=john"); got.Status != http.StatusForbidden || strings.Contains(got.Body, "example.com/room") {
		t.Errorf("another member: %+v, want 403", got)
	}
	if got, _ := d.ask("DELETE", "/events/party/registration", jane); got.Status != http.StatusOK {
		t.Fatalf("cancelling: %+v, want 200", got)
	}
	if got, _ := d.ask("GET", file, jane); got.Status != http.StatusForbidden || strings.Contains(got.Body, "example.com/room") {
		t.Errorf("after cancelling: %+v, want 403", got)
	}
}
