package ghost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// memberSession is the name of the cookie of a member's session. Its signature is in
	// another one, which has the name and ".sig".
	memberSession = "ghost-members-ssr"

	// memberPath is where, below Ghost's address, a session's member is.
	memberPath = "/members/api/member/"

	// maxReaderAnswer bounds Ghost's response about a member, in bytes. It has some 2 KB, and
	// more with subscriptions and newsletters.
	maxReaderAnswer = 256 << 10

	// maxUUID bounds the UUID of a member, in bytes. Ghost's has 36.
	maxUUID = 64
)

// readerClient asks a Ghost who its readers are. Strangers can cause such requests, so they
// have connections of their own.
type readerClient struct{ api }

// ReaderSession implements [platform.ReaderHost].
func (*readerClient) ReaderSession(cookie string) string {
	const signature = memberSession + ".sig"
	values := make(map[string]string, 2)
	for pair := range strings.SplitSeq(cookie, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if _, again := values[name]; !again && (name == memberSession || name == signature) { // Ghost takes the first
			values[name] = value
		}
	}
	session, signed := values[memberSession], values[signature]
	if session == "" || signed == "" || len(session)+len(signed) > maxSession {
		return ""
	}
	return memberSession + "=" + session + "; " + signature + "=" + signed
}

// Reader implements [platform.ReaderHost]. Ghost answers 204 to a session that
// has ended, and null to that of a member who was deleted.
func (c *readerClient) Reader(ctx context.Context, session string) (platform.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, min(c.timeout, staffTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.base, adminAPI)+memberPath, nil)
	if err != nil {
		return platform.Reader{}, err
	}
	request.Header.Set("Cookie", session)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("X-Forwarded-Proto", "https")
	response, err := c.http.Do(request)
	if err != nil {
		return platform.Reader{}, fmt.Errorf("asking Ghost who a reader is: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReaderAnswer))
	switch {
	case err != nil:
		return platform.Reader{}, fmt.Errorf("asking Ghost who a reader is: %w", err)
	case response.StatusCode == http.StatusNoContent:
		return platform.Reader{}, nil
	case response.StatusCode != http.StatusOK:
		return platform.Reader{}, fmt.Errorf("asking Ghost who a reader is: %w", refusal(response.StatusCode, answer))
	}
	var member *struct {
		UUID  string `json:"uuid"`
		Email string `json:"email"`
		Name  string `json:"name"`
		Paid  bool   `json:"paid"`
	}
	err = json.Unmarshal(answer, &member)
	if err == nil && member == nil {
		return platform.Reader{}, nil
	}
	if err != nil || member.UUID == "" || len(member.UUID) > maxUUID {
		return platform.Reader{}, fmt.Errorf("asking Ghost who a reader is: %w", &Error{Status: http.StatusOK, Message: "without a member"})
	}
	return platform.Reader{UUID: member.UUID, Email: clip.Text(member.Email, maxName), Name: clip.Text(member.Name, maxName), IsPaid: member.Paid}, nil
}
