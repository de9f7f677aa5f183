package eventsapi_test

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// feedToken is that of the calendar's address on the desk.
var feedToken = regexp.MustCompile(`events\.ics\?(token=[0-9a-f]+)`)

// arePrivate is about a publication whose readers need a password, as Ghost's settings say. In the end they need none.
func (r *readers) arePrivate() {
	r.T.Helper()
	const list = "/ghost/lychgate/events"
	set := func(isPrivate, password string, status int) {
		r.T.Helper()
		r.Ghost("PUT", "/settings/", `{"settings":[{"key":"is_private","value":`+isPrivate+`},{"key":"password","value":"`+password+`"}]}`)
		asked := 0
		wait.Until(r.T, func() string { // it is known api.AnswerTTL later
			asked++
			if got := r.Do("GET", list, "X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", asked/250%250, asked%250)); got.Status != status {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	set("true", "open-sesame", 403)
	r.T.Cleanup(func() { r.Ghost("PUT", "/settings/", `{"settings":[{"key":"is_private","value":false}]}`) })
	event := strings.TrimSuffix(r.free, "/registration")
	closed := []string{list, list + ".ics", event, event + ".ics"}
	for _, path := range closed {
		r.expect(403, path+" of a private site", r.Do("GET", path))
	}
	r.expect(403, "registration", r.ask("PUT", r.free, r.jane).Response)

	given, err := r.SendBody("POST", "/private/?r=%2F", "password=open-sesame", "Content-Type", "application/x-www-form-urlencoded")
	if err != nil {
		r.T.Fatalf("r.SendBody: %v", err)
	}
	var cookies []string
	for part := range strings.SplitSeq(given.Header["Set-Cookie"], "; ") {
		if strings.HasPrefix(part, "ghost-private") {
			cookies = append(cookies, part)
		}
	}
	cookie := strings.Join(cookies, "; ")
	for _, path := range closed {
		r.expect(200, path+" with the password", r.Do("GET", path, "Cookie", cookie))
		r.expect(403, path+" with another cookie", r.Do("GET", path, "Cookie", strings.Replace(cookie, "ghost-private=", "ghost-private=x", 1)))
	}
	r.expect(200, "registration with the password", r.ask("PUT", r.free, r.jane+"; "+cookie).Response)
	r.expect(200, "and back", r.ask("DELETE", r.free, r.jane+"; "+cookie).Response)

	settings := r.Do("GET", "/ghost/lychgate/desk/event-settings", "Cookie", r.Owner, "Origin", r.Base)
	token := feedToken.FindStringSubmatch(settings.Body)
	if token == nil {
		r.T.Fatalf("the desk shows no address with a token: %v", settings)
	}
	r.expect(200, "the calendar that the desk shows", r.Do("GET", list+".ics?"+token[1]))
	r.expect(403, "a list with its token", r.Do("GET", list+"?"+token[1]))

	set("false", "", 200)
}
