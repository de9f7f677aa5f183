package members

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// parseFields reads the fields of a member from JSON. Fields that are not known
// are ignored, and so is member_id where it does not identify a new member. One that is near to a
// field that changes who gets mail is refused.
func parseFields(body []byte, memberID bool) (f members.Fields, unknown []string, err error) {
	var object map[string]json.RawMessage
	err = api.Unmarshal(body, &object)
	if errors.Is(err, api.ErrNotUnicode) {
		return f, nil, &members.InvalidError{Message: "The body must be JSON in UTF-8, without escapes of half a character."}
	}
	if len(body) == 0 {
		return f, nil, &members.InvalidError{Message: "The body must be a JSON object. It is empty."}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return f, nil, &members.InvalidError{Message: fmt.Sprintf("The body must be a JSON object. It is not valid JSON, from byte %d of %d on.", syntax.Offset, len(body))}
	}
	if err != nil || object == nil {
		return f, nil, &members.InvalidError{Message: "The body must be a JSON object."}
	}
	if unknown, err = unknownFields(object); err != nil {
		return f, nil, err
	}
	var list *[]newsletter
	for _, field := range []struct {
		name, kind string
		into       any
	}{
		{"email", "a string", &f.Email},
		{"name", "a string", &f.Name},
		{"is_subscribed", "true or false", &f.Subscribed},
		{"newsletters", "an array of objects with an id and a status, both strings", &list},
		{"note", `a string; write "" to set none`, &f.Note},
		{"labels", "an array of strings", &f.Labels},
		{"tier_id", "a string or null", &f.TierID},
		{"member_id", "a string", &f.MemberID},
	} {
		value, there := object[field.name]
		if !there || field.name == "member_id" && !memberID {
			continue
		}
		if string(value) == "null" {
			if field.name == "tier_id" {
				f.TierID = new(*string)
				continue
			}
			err = errors.New("null")
		} else {
			err = json.Unmarshal(value, field.into)
		}
		if err != nil {
			return members.Fields{}, nil, &members.InvalidError{Message: "The " + field.name + " must be " + field.kind + "."}
		}
	}
	if list != nil {
		f.Newsletters = new(make([]members.Newsletter, 0, len(*list)))
		for _, n := range *list {
			*f.Newsletters = append(*f.Newsletters, members.Newsletter(n))
		}
	}
	return f, unknown, nil
}

// unknownFields lists the fields that no member has, sorted. Errors: *members.InvalidError, for one by which its
// sender may mean whether the member gets newsletters.
func unknownFields(object map[string]json.RawMessage) (unknown []string, err error) {
	for name := range object {
		if !slices.Contains(recordFields, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		folded := strings.Map(func(c rune) rune {
			if c == '_' || c == '-' || c == ' ' {
				return -1
			}
			return unicode.ToLower(c)
		}, name)
		for _, field := range aboutMail {
			if slices.Contains(field.near, folded) {
				return nil, &members.InvalidError{Message: fmt.Sprintf("There is no field %s: write %s.", name, field.write)}
			}
		}
	}
	return unknown, nil
}

// recordFields are those of a request, and those that a record which is sent back as it was read has beside them.
var recordFields = []string{
	"guid", "email", "name", "is_subscribed", "newsletters", "note", "labels", "tier_id", "member_id", "status", "created_at", "updated_at",
}

// aboutMail are what other APIs, Ghost's among them, call the fields that change who gets newsletters, in lower case
// and without what stands between words.
var aboutMail = []struct {
	write string
	near  []string
}{
	{"is_subscribed, true or false", []string{
		"subscribed", "issubscribed", "subscribe", "issubscribe", "subscription", "subscriptions", "subscriber", "issubscriber", "subscribedtoemails",
		"emailsubscribed", "emaildisabled", "unsubscribe", "unsubscribed", "isunsubscribed", "optin", "optedin", "optout", "optedout", "emailoptin", "emailoptout",
	}},
	{"newsletters, an array of objects with an id and a status", []string{"newsletter", "newsletters", "newsletterid", "newsletterids"}},
}

// newsletter is one as a body has it. encoding/json would take other names for its fields, such as ID,
// and null and "" for no status.
type newsletter members.Newsletter

func (n *newsletter) UnmarshalJSON(text []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	for name, into := range map[string]*string{"id": &n.ID, "status": &n.Status} {
		value, there := object[name]
		if !there {
			continue
		}
		if err := json.Unmarshal(value, into); err != nil {
			return err
		}
		if *into == "" {
			return errors.New("it is empty")
		}
	}
	return nil
}
