package ghost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

const (
	// memberSession is the name of the cookie of a member's session. Its signature is in
	// another one, which has the name and ".sig".
	memberSession = "ghost-members-ssr"

	// memberPath is where, below Ghost's address, a session's member is.
	memberPath = membersAPI + "member/"

	// membersAPI is the path of what the publication's pages ask.
	membersAPI = "/members/api/"

	// maxReaderResponse bounds Ghost's response about a member, in bytes. It has some 2 KB, and
	// more with subscriptions and newsletters.
	maxReaderResponse = 256 << 10
)

// readerClient asks a Ghost who its readers are, and has it mail links to them. Strangers can
// cause such requests, so each kind has connections of its own: a mail server may hang.
type readerClient struct {
	api
	mails api
	key   []byte // the secret of the Admin API key
}

func (*readerClient) ReaderSession(cookie string) string {
	session, signature := cookieOf(cookie, memberSession), cookieOf(cookie, memberSession+".sig")
	if session == "" || signature == "" || len(session)+len(signature) > maxSession {
		return ""
	}
	return session + "; " + signature
}

// sendAsReader sends a request as a page of the publication does, without the edge's key.
func (a api) sendAsReader(ctx context.Context, r request) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, min(a.timeout, staffTimeout))
	defer cancel()
	r.url, r.maxResponse, r.isReaders = a.site+r.url, maxReaderResponse, true
	return a.do(ctx, r)
}

// Ghost answers 204 to a session that has ended, and null to that of a deleted member.
func (c *readerClient) Reader(ctx context.Context, session string) (platform.Reader, error) {
	got, err := c.sendAsReader(ctx, request{method: http.MethodGet, url: memberPath, header: map[string]string{"Cookie": session}})
	switch {
	case err != nil:
		return platform.Reader{}, fmt.Errorf("asking Ghost who a reader is: %w", err)
	case got.status == http.StatusNoContent:
		return platform.Reader{}, nil
	case got.status != http.StatusOK:
		return platform.Reader{}, fmt.Errorf("asking Ghost who a reader is: %w", refusal(got.status, got.body))
	}
	var member *struct {
		UUID  string `json:"uuid"`
		Email string `json:"email"`
		Name  string `json:"name"`
		Paid  bool   `json:"paid"`
		Since string `json:"created_at"`
	}
	err = decode(got.body, &member)
	if err == nil && member == nil {
		return platform.Reader{}, nil
	}
	if err != nil || member.UUID == "" || len(member.UUID) > maxUUID {
		return platform.Reader{}, fmt.Errorf("asking Ghost who a reader is: %w", &Error{Status: http.StatusOK, Message: "without a member"})
	}
	since, _ := time.Parse(time.RFC3339, member.Since)
	return platform.Reader{UUID: member.UUID, Email: clip.Text(member.Email, maxName), Name: clip.Text(member.Name, maxName), IsPaid: member.Paid, Since: since}, nil
}

// Newsletters leaves out those that are for paying members, which nobody gets by signing up.
func (c *readerClient) Newsletters(ctx context.Context) (platform.Newsletters, error) {
	ctx, cancel := context.WithTimeout(ctx, staffTimeout)
	defer cancel()
	var response struct {
		Newsletters []struct {
			Name       string `json:"name"`
			Visibility string `json:"visibility"`
			IsDefault  bool   `json:"subscribe_on_signup"`
		} `json:"newsletters"`
	}
	if err := c.call(ctx, http.MethodGet, "/newsletters/", url.Values{"filter": {"status:active"}, "limit": {"100"}}, nil, &response); err != nil {
		return platform.Newsletters{}, fmt.Errorf("asking Ghost for its newsletters: %w", err)
	}
	var all platform.Newsletters
	for _, n := range response.Newsletters {
		if n.Visibility == "members" {
			all.Names = append(all.Names, n.Name)
			all.AreDefault = all.AreDefault || n.IsDefault
		}
	}
	return all, nil
}

var errNobody = errors.New("the session has ended")

// LeaveNewsletters changes the member as their own account page does.
func (c *readerClient) LeaveNewsletters(ctx context.Context, session string) error {
	left, err := c.sendAsReader(ctx, request{method: http.MethodPut, url: memberPath, header: map[string]string{"Cookie": session}, body: map[string][]string{"newsletters": {}}})
	switch {
	case err != nil:
	case left.status == http.StatusOK && string(bytes.TrimSpace(left.body)) == "null":
		err = errNobody
	case left.status >= 400 && left.status < 500 && left.status != http.StatusTooManyRequests:
		err = fmt.Errorf("%w: %w", platform.ErrNewslettersStay, refusal(left.status, left.body))
	case left.status != http.StatusOK:
		err = refusal(left.status, left.body)
	}
	if err != nil {
		return fmt.Errorf("taking a member off Ghost's newsletters: %w", err)
	}
	return nil
}

// Ghost redirects a link that it does not take any more to the homepage, with success=false. It redirects a new member to the
// page that staff have set to welcome members.
func (*readerClient) LinkPage(link *url.URL, response http.Header) string {
	site, isLink := strings.CutSuffix(link.Path, "members/")
	to, err := url.Parse(response.Get("Location"))
	page, pageErr := url.Parse(link.Query().Get("r"))
	if !isLink || err != nil || pageErr != nil || to.Path == page.Path || !strings.HasPrefix(page.Path, "/") || strings.HasPrefix(page.Path, "//") {
		return ""
	}
	isRefused := to.Path == site && to.Query().Get("success") == "false"
	isSignedIn := slices.ContainsFunc(response.Values("Set-Cookie"), func(cookie string) bool { return strings.HasPrefix(cookie, memberSession+"=") })
	if !isRefused && !isSignedIn {
		return ""
	}
	return (&url.URL{Path: page.Path, RawPath: page.RawPath, RawQuery: page.RawQuery}).String()
}

func (c *readerClient) LinkKey() []byte { return sign(c.key, "lychgate registration links") }

// tokenTimeout is how long a reader waits for a Ghost that hangs. One that responds may take longer then: its mail server may be slow.
const tokenTimeout = 3 * time.Second

var errHangs = errors.New("it does not respond") // so that no mail may be on its way

// Ghost mails a sign-in link to a member's address even if a sign-up was asked for. Asked for a
// sign-in, Ghost 6 accepts any address, so that nobody learns who is a member, and Ghost 5 refuses
// addresses that no member has.
func (c *readerClient) SendLink(ctx context.Context, link platform.SignInLink) (isSent bool, err error) {
	asking, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	token, err := c.mails.sendAsReader(asking, request{method: http.MethodGet, url: membersAPI + "integrity-token/"})
	if errors.Is(err, context.DeadlineExceeded) {
		err = errHangs
	}
	if err == nil && token.status != http.StatusOK {
		err = refusal(token.status, token.body)
	}
	if err != nil {
		return false, fmt.Errorf("asking Ghost for a token to send mails: %w", err)
	}
	kinds := []string{"signin"}
	if link.MaySignUp {
		kinds = []string{"signup", "signin"} // the first is refused where sign-ups are by invitation
	}
	header := make(map[string]string)
	if link.Sender.IsValid() {
		header["X-Forwarded-For"] = link.Sender.String()
	}
	for _, kind := range kinds {
		body := map[string]any{"email": link.Email, "emailType": kind, "integrityToken": string(token.body), "redirect": link.Page}
		if link.Name != "" {
			body["name"] = link.Name // which Ghost gives to who signs up
		}
		if link.Newsletters != nil {
			body["newsletters"] = named(link.Newsletters) // of which older versions take none for what all get
		}
		sent, err := c.mails.sendAsReader(ctx, request{method: http.MethodPost, url: membersAPI + "send-magic-link/", header: header, body: body})
		switch {
		case err != nil:
			return false, fmt.Errorf("having Ghost mail a link: %w", err)
		case sent.status >= 200 && sent.status < 300:
			return kind == "signup", nil
		case sent.status == http.StatusTooManyRequests:
			return false, platform.ErrTooManyMails
		case sent.status != http.StatusBadRequest:
			return false, fmt.Errorf("having Ghost mail a link: %w", mailError(sent))
		}
	}
	return false, platform.ErrNoReader
}

// named are newsletters as Ghost's sign-up takes them.
func named(names []string) []map[string]string {
	all := []map[string]string{}
	for _, name := range names {
		all = append(all, map[string]string{"name": name})
	}
	return all
}

// mailError is the error of a response about a mail. Its text is left out, since it has the
// address that a mail server refused. Ghost's own log has it.
func mailError(sent response) error {
	first := firstError(sent.body)
	return &Error{Status: sent.status, Type: first.Type, Code: first.Code}
}
