package ghost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/lychgate/caddy-lychgate/platform"
)

// Staff implements [platform.StaffRoom]. Ghost takes a session only from the
// origin that it was begun at, so that is passed on with the cookie.
func (c *Client) Staff(ctx context.Context, visitor platform.Visitor) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	address := c.base + "/users/me/?" + url.Values{"include": {"roles"}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Cookie": visitor.Cookie, "Origin": visitor.Origin, "Referer": visitor.Referer, "User-Agent": visitor.UserAgent,
		"Accept-Version": apiVersion, "X-Forwarded-Proto": "https",
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking Ghost who a visitor is: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("asking Ghost who a visitor is: %w", err)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest: // the last for another origin
		return nil, platform.ErrNotStaff
	default:
		return nil, fmt.Errorf("asking Ghost who a visitor is: %w", refusal(response.StatusCode, answer))
	}
	var body struct {
		Users []struct {
			Roles []struct {
				Name string `json:"name"`
			} `json:"roles"`
		} `json:"users"`
	}
	if err := json.Unmarshal(answer, &body); err != nil || len(body.Users) != 1 {
		return nil, fmt.Errorf("asking Ghost who a visitor is: %w", &Error{Status: http.StatusOK, Message: "without a user"})
	}
	var roles []string
	for _, role := range body.Users[0].Roles {
		roles = append(roles, role.Name)
	}
	return roles, nil
}

var _ platform.StaffRoom = (*Client)(nil)
