package events

import (
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Type is an event type of a theme, with the tags that its posts get.
type Type struct {
	manifest.EventType
	Tags []string // the theme's default tags and the type's own
}

// NewType returns the type with a key, and false if there is none.
func NewType(declared *manifest.Events, key string) (*Type, bool) {
	t, ok := declared.Type(key)
	if !ok {
		return nil, false
	}
	return &Type{t, declared.EventTags(t)}, true
}

// shape returns how posts of the type are made.
func (t *Type) shape() Shape {
	fields := slices.Clone(t.SupportedFields)
	for _, custom := range t.CustomFields {
		fields = append(fields, custom.Key)
	}
	return Shape{Label: t.Label, Template: t.PostTemplate, Tags: t.Tags, Fields: fields}
}

// Problems returns why an event with some values cannot be published: what the manifest
// demands (docs/manifest.md), values of standard fields that nobody can use, such as a date
// that does not exist, and texts that are longer than the platform takes. The order is that
// of the fields in the editor; none is an empty list.
func (t *Type) Problems(values map[string]any, limits platform.PostLimits) []manifest.Problem {
	found := t.Publish(values)
	missing := make(map[string]bool)
	for i, p := range found {
		missing[p.Field] = true
		if f, ok := StandardField(p.Field); ok {
			found[i].Message = f.Label + " is required." // as the editor names the field
		}
	}
	for _, key := range t.SupportedFields {
		f, ok := StandardField(key)
		if !ok || missing[key] || !manifest.IsFilled(values[key]) {
			continue
		}
		if wrong := f.wrong(values, limits); wrong != "" {
			found = append(found, manifest.Problem{Field: key, Message: f.Label + " " + wrong + "."})
		}
	}
	order := t.fields()
	slices.SortStableFunc(found, func(a, b manifest.Problem) int {
		return slices.Index(order, a.Field) - slices.Index(order, b.Field)
	})
	return found
}

// postProblems returns why the platform would not take what the theme says of the posts of
// the type.
func (t *Type) postProblems(values map[string]any, limits platform.PostLimits) []manifest.Problem {
	var found []manifest.Problem
	if wrong := tooLong(t.Label, limits.Title); wrong != "" && textOf(values, "name") == "" {
		found = append(found, manifest.Problem{Field: "type", Message: "The event has no name, and the type's label, which would be the title, " + wrong + "."})
	}
	if wrong := tooLong(t.PostTemplate, limits.Template); wrong != "" {
		found = append(found, manifest.Problem{Field: "type", Message: "The name of the type's template " + wrong + "."})
	}
	for _, tag := range t.Tags {
		if wrong := tooLong(tag, limits.Tag); wrong != "" {
			found = append(found, manifest.Problem{Field: "type", Message: "The type's tag " + clip.Text(tag, 40) + " " + wrong + "."})
		}
	}
	return found
}

// fields returns the keys of the type's fields, in the order of the editor.
func (t *Type) fields() []string {
	order := manifest.StandardFields()
	for _, custom := range t.CustomFields {
		order = append(order, custom.Key)
	}
	return order
}
