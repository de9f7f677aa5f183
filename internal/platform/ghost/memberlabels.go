package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

func (c *memberClient) LabelsOf(ctx context.Context, uuid string) (id string, labels []string, err error) {
	var found struct {
		Members []struct {
			ID     string  `json:"id"`
			UUID   string  `json:"uuid"`
			Labels []label `json:"labels"`
		} `json:"members"`
	}
	if err := c.call(ctx, http.MethodGet, "/members/", url.Values{"filter": {"uuid:" + quote(uuid)}, "limit": {"1"}}, nil, &found); err != nil {
		return "", nil, err
	}
	if len(found.Members) == 0 {
		return "", nil, platform.ErrNotFound
	}
	member := found.Members[0]
	if member.UUID != uuid { // a filter that Ghost passes over would name anybody
		return "", nil, errors.New("asking Ghost for a member by UUID: it returned another one")
	}
	for _, l := range member.Labels {
		labels = append(labels, l.Name)
	}
	return member.ID, labels, nil
}

func (c *memberClient) MembersOf(ctx context.Context, uuids []string) (there []string, err error) {
	var found struct {
		Members []struct {
			UUID string `json:"uuid"`
		} `json:"members"`
	}
	query := url.Values{"filter": {"uuid:" + oneOf(uuids)}, "fields": {"id,uuid"}, "limit": {strconv.Itoa(len(uuids))}}
	if err := c.call(ctx, http.MethodGet, "/members/", query, nil, &found); err != nil {
		return nil, err
	}
	for _, member := range found.Members {
		if !slices.Contains(uuids, member.UUID) {
			return nil, errors.New("asking Ghost for members by UUID: it returned another one; does something in front of it drop the query from a request?")
		}
		there = append(there, member.UUID)
	}
	return there, nil
}

// Ghost adds a label twice if it is asked twice, and removes both at once.
func (c *memberClient) AddLabel(ctx context.Context, id, name string) error {
	label, err := c.labelID(ctx, name)
	if err != nil {
		return err
	}
	if label == "" {
		if label, err = c.makeLabel(ctx, name); err != nil {
			return err
		}
	}
	return c.changeLabel(ctx, id, "addLabel", label)
}

// Ghost refuses a label that somebody else has just made. That one is used then.
func (c *memberClient) makeLabel(ctx context.Context, name string) (string, error) {
	var made labels
	err := c.call(ctx, http.MethodPost, "/labels/", nil, labels{[]label{{Name: name}}}, &made)
	if _, isRefused := errors.AsType[*platform.Refusal](err); isRefused {
		if label, again := c.labelID(ctx, name); again != nil || label != "" {
			return label, again
		}
	}
	if err != nil {
		return "", err
	}
	return made.first()
}

func (c *memberClient) RemoveLabel(ctx context.Context, id, name string) error {
	label, err := c.labelID(ctx, name)
	if err != nil || label == "" {
		return err
	}
	return c.changeLabel(ctx, id, "removeLabel", label)
}

func (l labels) first() (string, error) {
	if len(l.Labels) == 0 || l.Labels[0].ID == "" {
		return "", errors.New("asking Ghost for a label: it returned none")
	}
	return l.Labels[0].ID, nil
}

// labelID is "" if there is no such label.
func (c *memberClient) labelID(ctx context.Context, name string) (string, error) {
	var found labels
	err := c.call(ctx, http.MethodGet, "/labels/", url.Values{"filter": {"name:" + quote(name)}, "limit": {"1"}}, nil, &found)
	if err != nil || len(found.Labels) == 0 {
		return "", err
	}
	return found.first()
}

// changeLabel sends Ghost's action on many members for one. It answers 200 also if the label is
// not there any more.
func (c *memberClient) changeLabel(ctx context.Context, id, action, label string) error {
	body := map[string]any{"bulk": map[string]any{"action": action, "meta": map[string]any{"label": map[string]string{"id": label}}}}
	var done struct {
		Bulk struct {
			Meta struct {
				Stats struct {
					Unsuccessful int `json:"unsuccessful"`
				} `json:"stats"`
			} `json:"meta"`
		} `json:"bulk"`
	}
	if err := c.call(ctx, http.MethodPut, "/members/bulk/", url.Values{"filter": {"id:" + quote(id)}}, body, &done); err != nil {
		return err
	}
	if done.Bulk.Meta.Stats.Unsuccessful > 0 {
		return fmt.Errorf("changing a label in Ghost: %s was not done", action)
	}
	return nil
}
