package eventsapi_test

import (
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// changesRegistrations adds somebody to the list of an event that has one place, checks them in,
// and removes them, with a real Ghost.
func changesRegistrations(h *edgetest.Homepage, list, email string) {
	h.T.Helper()
	ask := func(status int, method, path, body string, header ...string) edgetest.Response {
		h.T.Helper()
		got, err := h.SendBody(method, list+path, body, append([]string{"Cookie", h.Owner, "Origin", h.Base, "Content-Type", "application/json"}, header...)...)
		if got.Status != status || err != nil {
			h.T.Errorf("%s %s%s: %v, %v, want %d", method, list, path, got, err, status)
		}
		return got
	}
	var added struct {
		Member, Email, Name string
		AddedBy             *string `json:"added_by"`
		CheckedInAt         *string `json:"checked_in_at"`
	}
	h.Decode(ask(201, "POST", "", `{"email":"`+email+`","name":"=Ann","over_limit":true}`).Body, &added)
	if added.Member == "" || added.Email != email || added.Name != "=Ann" || added.AddedBy == nil || *added.AddedBy == "" {
		h.T.Errorf("added: %+v, want =Ann with the name of who added her", added)
	}
	var made struct {
		Members []struct {
			UUID        string `json:"uuid"`
			Newsletters []struct{ ID string }
		}
	}
	h.Decode(h.Ghost("GET", "/members/?filter="+"email:'"+strings.ReplaceAll(email, "@", "%40")+"'&include=newsletters", ""), &made)
	if len(made.Members) != 1 || made.Members[0].UUID != added.Member || len(made.Members[0].Newsletters) != 0 {
		h.T.Errorf("in Ghost: %+v, want one member with UUID %s and no newsletter", made, added.Member)
	}
	ask(200, "POST", "", `{"email":"`+email+`"}`)
	if got := ask(409, "POST", "", `{"email":"other-`+email+`"}`); got.Body != `{"message":"The one place is taken.","reason":"full"}`+"\n" {
		h.T.Errorf("over the limit: %v, want that it is full", got)
	}
	one := "/" + added.Member
	h.Decode(ask(200, "PUT", one+"/check-in", "").Body, &added)
	if added.CheckedInAt == nil {
		h.T.Errorf("checked in: %+v, want a time", added)
	}
	for _, method := range []string{"GET", "HEAD"} {
		got := ask(200, method, "?changed_after=&limit=1000", "")
		ask(304, method, "?changed_after=1.", "", "If-None-Match", got.Header["Etag"])
		csv := ask(200, method, ".csv", "")
		if want := `"` + email + `","'=Ann"`; (method == "GET") != strings.Contains(csv.Body, want) {
			h.T.Errorf("%s of the CSV: %v, want %s in the file", method, csv, want)
		}
	}
	ask(200, "DELETE", one+"/check-in", "")
	ask(204, "DELETE", one, "")
	ask(409, "PUT", one+"/check-in", "")
	ask(201, "POST", "", `{"member":"`+added.Member+`"}`)
	ask(204, "DELETE", one, "")
	if got := ask(409, "DELETE", one+"/name", ""); !strings.Contains(got.Body, "Only the name of a guest without an email who was removed can be erased.") {
		h.T.Errorf("the name of a member is erased: %v, want that it cannot be", got)
	}
	h.Decode(ask(201, "POST", "", `{"name":"Max"}`).Body, &added)
	ask(204, "DELETE", "/"+added.Member, "")
	ask(204, "DELETE", "/"+added.Member+"/name", "")
}
