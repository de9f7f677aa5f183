package desk

import (
	"fmt"
	"strings"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// api asks Ghost's Admin API from a page of Ghost Admin, and returns the response's status
// and text.
func api(p *browser.Page, method, path, body string) (status int, text string) {
	return ghosttest.Settled(func() (int, string) { return apiOnce(p, method, path, body) })
}

func apiOnce(p *browser.Page, method, path, body string) (status int, text string) {
	got := browser.JS[struct {
		Status int
		Text   string
	}](p, `(async () => {
		const response = await fetch(location.pathname.replace(/ghost\/.*/, 'ghost/api/admin') + %q, {method: %q,
			headers: {'Content-Type': 'application/json'}, ...%q ? {body: %q} : {}});
		return {Status: response.status, Text: await response.text()};
	})()`, path, method, body, body)
	return got.Status, got.Text
}

// addStaff makes one of the staff with a role, by an invitation of the owner's. Nobody
// is signed in afterwards.
func (s *site) addStaff(role string) (email string) {
	s.t.Helper()
	email = strings.ToLower(strings.ReplaceAll(role, " ", "-")) + "@example.com"
	p := s.signIn(owner)
	send := func(method, path, body string) string {
		status, text := api(p, method, path, body)
		if status >= 300 {
			s.t.Fatalf("%s %s: got status %d, %s, want less than 300", method, path, status, text)
		}
		return text
	}
	id := ""
	for object := range strings.SplitSeq(send("GET", "/roles/?limit=all", ""), "{") {
		if strings.Contains(object, `"name":"`+role+`"`) {
			_, rest, _ := strings.Cut(object, `"id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	send("POST", "/invites/", fmt.Sprintf(`{"invites":[{"email":%q,"role_id":%q}]}`, email, id))
	mail := s.mail.Wait(s.t, email)
	_, rest, _ := strings.Cut(mail, "/signup/")
	token, _, found := strings.Cut(rest, "/")
	if !found {
		s.t.Fatalf("no invitation: %s", mail)
	}
	send("POST", "/authentication/invitation/", fmt.Sprintf(`{"invitation":[{"token":%q,"email":%q,"name":%q,"password":%q}]}`, token, email, role, password))
	return email
}
