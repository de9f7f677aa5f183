package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

const (
	// sessionCookie is the name of the cookie of a session of the staff's.
	sessionCookie = "ghost-admin-api-session"

	// maxSession bounds that cookie's value, in bytes. Ghost's has some 90.
	maxSession = 1024

	// maxHeader bounds each of the other headers that are passed on to Ghost, in
	// bytes. It responds with 431 to 16 KiB of headers.
	maxHeader = 2048
)

// visitorClient asks a Ghost about visitors, with what their browsers send, and about what
// it tells anyone. Strangers can cause such requests.
type visitorClient struct{ api }

func (*visitorClient) StaffSession(cookie string) string { return session(cookie) }

func (*visitorClient) HasToken(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Ghost") && token != ""
}

func session(cookie string) string { return cookieOf(cookie, sessionCookie) }

// cookieOf picks a cookie out of a Cookie header, "" without it. Of several of the name the first counts, as in Ghost.
func cookieOf(cookie, wanted string) string {
	for pair := range strings.SplitSeq(cookie, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if name != wanted {
			continue
		}
		if value == "" || len(value) > maxSession {
			return ""
		}
		return name + "=" + value
	}
	return ""
}

// Ghost 5 takes a session only from the
// origin that it was begun at, and Ghost 6 only from the origin of its own admin, so
// the visitor's is passed on with the session's cookie. Other cookies are not.
//
// A request without an origin is one of Ghost's own admin to Ghost. So a visitor
// with platform.Visitor.SameOrigin whose origin Ghost refuses is asked about again
// without.
func (c *visitorClient) Staff(ctx context.Context, visitor platform.Visitor) (platform.StaffMember, error) {
	response, err := c.askAs(ctx, "/users/me/?"+url.Values{"include": {"roles"}}.Encode(), visitor)
	if err != nil {
		return platform.StaffMember{}, err
	}
	return readUser(response)
}

// askAs asks Ghost with the session of a visitor. Errors: those of ask.
func (c *visitorClient) askAs(ctx context.Context, path string, visitor platform.Visitor) ([]byte, error) {
	if visitor.Cookie = session(visitor.Cookie); visitor.Cookie == "" {
		return nil, platform.ErrNotStaff
	}
	response, err := c.askWith(ctx, path, visitor)
	if _, refused := errors.AsType[*platform.SessionError](err); refused && visitor.SameOrigin {
		elsewhere := err
		response, err = c.askWith(ctx, path, platform.Visitor{Cookie: visitor.Cookie, UserAgent: visitor.UserAgent})
		if errors.Is(err, platform.ErrNotStaff) {
			err = elsewhere // names the visitor's origin
		}
	}
	return response, err
}

// permissions are those of Ghost's roles. A Super Editor is an Editor who may also
// manage members. An Author and a Contributor have none.
var permissions = map[string]platform.Permissions{
	"Owner":         {UploadThemes: true, ManageManifests: true, Administer: true},
	"Administrator": {UploadThemes: true, ManageManifests: true, Administer: true},
	"Editor":        {ManageManifests: true},
	"Super Editor":  {ManageManifests: true},
}

// readUser reads Ghost's response about the user of a session.
func readUser(response []byte) (platform.StaffMember, error) {
	var body struct {
		Users []struct {
			ID    string `json:"id"`
			Name  string `json:"name"`
			Email string `json:"email"`
			Roles []struct {
				Name string `json:"name"`
			} `json:"roles"`
			Accessibility string `json:"accessibility"`
		} `json:"users"`
	}
	if err := decode(response, &body); err != nil || len(body.Users) != 1 {
		return platform.StaffMember{}, fmt.Errorf("asking Ghost who a visitor is: %w", &Error{Status: http.StatusOK, Message: "without a user"})
	}
	member := platform.StaffMember{ID: clip.Text(body.Users[0].ID, maxName), Name: clip.Text(body.Users[0].Name, maxName)}
	if email := body.Users[0].Email; len(email) <= maxName {
		member.Email = email
	}
	member.Scheme = schemeIn(body.Users[0].Accessibility)
	for _, role := range body.Users[0].Roles {
		member.Roles = append(member.Roles, role.Name)
		member.Permissions = member.Permissions.Union(permissions[role.Name])
	}
	return member, nil
}

// schemeIn reads what Ghost Admin keeps of somebody's preferences. It calls its dark mode night shift: a boolean
// until Ghost 6.22, and "light", "dark" or "system" in 6.65. Without one of these Admin is light in all versions.
func schemeIn(preferences string) string {
	var kept struct {
		NightShift any `json:"nightShift"`
	}
	_ = decode([]byte(preferences), &kept) // what is no JSON has none
	switch kept.NightShift {
	case true, "dark":
		return "dark"
	case "system":
		return ""
	}
	return "light"
}

func (c *visitorClient) askWith(ctx context.Context, path string, visitor platform.Visitor) ([]byte, error) {
	return c.ask(ctx, path, map[string]string{
		"Cookie": visitor.Cookie, "Origin": visitor.Origin, "Referer": visitor.Referer, "User-Agent": visitor.UserAgent,
	})
}

func (c *visitorClient) CheckToken(ctx context.Context, authorization string) error {
	if !c.HasToken(authorization) {
		return platform.ErrNotStaff
	}
	_, err := c.ask(ctx, "/config/", map[string]string{"Authorization": authorization})
	return err
}

// ask asks Ghost on behalf of a visitor, with their headers. Such requests have
// connections of their own: however many are sent, those about members do not wait
// for them. Errors: platform.ErrNotStaff, *platform.SessionError, platform.ErrUnanswered.
func (c *visitorClient) ask(ctx context.Context, path string, header map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, min(c.timeout, staffTimeout))
	defer cancel()
	sent := map[string]string{"Accept-Version": apiVersion}
	for name, value := range header {
		if len(value) <= maxHeader {
			sent[name] = value
		}
	}
	response, err := c.do(ctx, request{method: http.MethodGet, url: c.base + path, header: sent, maxResponse: maxResponse})
	isRefusal := errors.Is(err, errTooLong) && response.status >= 400 // its status says enough
	if err != nil && !isRefusal {
		return nil, unanswered(err)
	}
	switch status, body := response.status, response.body; {
	case status == http.StatusOK:
		return body, nil
	case status == http.StatusNotFound, status == http.StatusTooManyRequests:
		// This is no Ghost, or it is busy, which says nothing of the visitor.
		return nil, fmt.Errorf("asking Ghost who a visitor is: %w", refusal(status, body))
	case status == http.StatusBadRequest:
		return nil, sessionError(body)
	case status >= 400 && status < 500:
		return nil, platform.ErrNotStaff
	case status >= 500:
		return nil, unanswered(refusal(status, body))
	default:
		return nil, fmt.Errorf("asking Ghost who a visitor is: %w", refusal(status, body))
	}
}

// unanswered makes an error one of a Ghost that says neither yes nor no.
func unanswered(err error) error {
	return fmt.Errorf("asking Ghost who a visitor is: %w: %w", platform.ErrUnanswered, err)
}

// wrongOrigin starts the message with which Ghost refuses a session for its origin.
const wrongOrigin = "Request made from incorrect origin."

// sessionError turns a 400 response into an error. Other such responses are about
// tokens.
func sessionError(response []byte) error {
	message := firstError(response).Message
	if !strings.HasPrefix(message, wrongOrigin) || len(message) > maxHeader+1024 {
		return platform.ErrNotStaff
	}
	return &platform.SessionError{Reason: message}
}
