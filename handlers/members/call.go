package members

import (
	"context"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// memberCall is a request of the members API, read and checked as far as that
// goes without looking at members.
type memberCall struct {
	logger      *zap.Logger
	method      string
	identifier  string // empty for a create
	body        []byte
	match       func(members.Member) bool
	integration members.Integration
	guid        string // that a create is to give, or empty
}

const (
	memberCreated = "Member created successfully."
	memberUpdated = "Member updated successfully."
)

// run does what the call asks for.
func (c *memberCall) run(ctx context.Context, service *members.Service) (*memberResponse, error) {
	switch c.method {
	case http.MethodPost:
		fields, unknown, err := parseFields(c.body, c.integration.Mode == members.CustomIDMode)
		if err != nil {
			return nil, err
		}
		fields.GUID = c.guid
		return naming(unknown)(respondWith(memberCreated)(service.Create(ctx, c.integration, fields)))
	case http.MethodPut:
		fields, unknown, err := parseFields(c.body, false)
		if err != nil {
			return nil, err
		}
		return naming(unknown)(respondWith(memberUpdated)(service.Update(ctx, c.integration, c.identifier, fields, c.match)))
	case http.MethodDelete:
		result, err := service.Delete(ctx, c.integration, c.identifier, c.match)
		if err != nil {
			return nil, err
		}
		return deleted(result.Queued), nil
	}
	return respondWith("Member retrieved successfully.")(service.Get(ctx, c.integration, c.identifier))
}

// The message is that of the response to a call that succeeds.
func respondWith(message string) func(members.Result, error) (*memberResponse, error) {
	return func(result members.Result, err error) (*memberResponse, error) {
		if err != nil {
			return nil, err
		}
		m := result.Member
		text := api.JSON(NewMemberRecord(m))
		return &memberResponse{
			ETag: api.ETag(tag(text, m.UpdatedAt)), Queued: result.Queued, refused: result.Refused, GUID: m.GUID, MemberID: m.MemberID,
			Body: memberBody(text, message),
		}, nil
	}
}

// naming has a response name the fields of its request that are not known.
func naming(unknown []string) func(*memberResponse, error) (*memberResponse, error) {
	return func(response *memberResponse, err error) (*memberResponse, error) {
		if response != nil {
			response.unknown = unknown
		}
		return response, err
	}
}

func deleted(queued bool) *memberResponse {
	return &memberResponse{
		Queued: queued,
		Body:   api.JSON(envelope{Success: true, Data: []string{}, Message: "Member deleted successfully."}),
	}
}

// ifMatch reads If-Match (RFC 9110, section 13.1.1). The function tells whether a member
// is in one of the states that it names; it is nil if it names none.
func ifMatch(values []string) func(members.Member) bool {
	if len(values) == 0 {
		return nil
	}
	return func(m members.Member) bool {
		want := tagOf(m) // once: there is room in a header for a million tags
		for _, value := range values {
			for tag := range strings.SplitSeq(value, ",") {
				if strings.TrimSpace(tag) == "*" || api.TagOf(tag) == want {
					return true
				}
			}
		}
		return false
	}
}
