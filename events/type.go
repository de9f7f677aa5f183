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
// that does not exist, and texts that are longer than the platform takes. They are in the
// order of the fields in the editor.
func (t *Type) Problems(values map[string]any, limits platform.PostLimits) []manifest.Problem {
	found := []manifest.Problem{}
	for _, key := range manifest.StandardFields() {
		f, _ := StandardField(key)
		wrong := ""
		switch isFilled := manifest.IsFilled(values[key]); {
		case isFilled && slices.Contains(t.SupportedFields, key):
			wrong = f.wrong(values, limits)
		case !isFilled && slices.Contains(t.RequiredFields, key):
			wrong = "is required"
		}
		if wrong != "" {
			found = append(found, manifest.Problem{Field: key, Message: f.Label + " " + wrong + "."})
		}
	}
	for _, p := range t.Publish(values) {
		if _, isStandard := StandardField(p.Field); !isStandard {
			found = append(found, p)
		}
	}
	return found
}

// postProblems returns what the theme says of the type's posts that the platform would not take.
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
