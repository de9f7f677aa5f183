package events

import (
	"cmp"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file says whether an event can be public: by the same rules on the desk, and where staff
// publish its post on the platform.

// shape notes what an event's type says of its post. Errors: *InvalidError, if it cannot be
// published.
func (s *Posts) shape(e *Event, t *Type) error {
	if t == nil || t.Key != e.Type {
		return &InvalidError{[]manifest.Problem{{Field: "type", Message: "The theme has no such event type any more. Choose another one."}}}
	}
	isTheirs := e.Post.Slug != "" && textOf(e.Values, "slug") == e.Post.Slug // such as snake_case
	problems := slices.DeleteFunc(t.Problems(e.Values, s.limits(e.Site)), func(p manifest.Problem) bool { return isTheirs && p.Field == "slug" })
	e.Shape = t.shape()
	for _, p := range problems {
		e.Shape.Wrong = append(e.Shape.Wrong, p.Field)
	}
	if len(problems) == 0 {
		problems = s.postProblems(e)
		e.Shape.IsPostWrong = len(problems) > 0
	}
	if len(problems) > 0 {
		return &InvalidError{problems}
	}
	e.Shape.Checked = e.Status
	return nil
}

// shapeDraft is shape for a draft, whose values may be any. Errors: *InvalidError, if it cannot
// have a post.
func (s *Posts) shapeDraft(e *Event, t *Type) error {
	was := e.Shape.Checked
	e.Shape.Wrong = []string{"type"} // unless there is one
	err := s.shape(e, t)
	e.Shape.Checked = ""
	if err == nil {
		e.Shape.Checked = cmp.Or(was, Published)
		return nil
	}
	if t == nil || t.Key != e.Type {
		return err
	}
	if problems := e.typeProblems(s.limits(e.Site)); len(problems) > 0 {
		return &InvalidError{problems}
	}
	return nil
}

// recheck is shapeDraft for a draft that was checked, and of which staff have changed some fields in
// its post: the platform takes what they have written.
func (s *Posts) recheck(e *Event, changed []string) {
	wasChecked := e.Shape.Checked != "" || e.Shape.IsPostWrong || len(e.Shape.Wrong) > 0
	if e.Status != Draft || !wasChecked || len(changed) == 0 {
		return
	}
	e.Shape.Wrong = slices.DeleteFunc(slices.Clone(e.Shape.Wrong), func(key string) bool { return slices.Contains(changed, key) })
	for _, key := range changed {
		if textOf(e.Values, key) == "" && slices.Contains(e.Shape.Required, key) {
			e.Shape.Wrong = append(e.Shape.Wrong, key)
		}
	}
	e.Shape.IsPostWrong = len(e.Shape.Wrong) == 0 && len(s.postProblems(e)) > 0
	if e.Shape.IsPostWrong || len(e.Shape.Wrong) > 0 {
		e.Shape.Checked = ""
	} else {
		e.Shape.Checked = cmp.Or(e.Shape.Checked, Published)
	}
}

// postProblems is for an event whose fields are valid: the platform may still refuse its post.
func (s *Posts) postProblems(e *Event) []manifest.Problem {
	limits := s.limits(e.Site)
	problems := e.typeProblems(limits)
	if len(problems) == 0 && limits.Head > 0 && len(e.head(sitePage{script: s.pages.Script}, ""))+maxKnownLater > limits.Head {
		problems = []manifest.Problem{{Field: "description", Message: "The event's texts are too long for its page all together. Shorten them."}}
	}
	return problems
}

// typeProblems checks what the theme says of the event's post: the platform may refuse long texts.
func (e *Event) typeProblems(limits platform.PostLimits) []manifest.Problem {
	var found []manifest.Problem
	if wrong := tooLong(e.Shape.Label, limits.Title); wrong != "" && e.Text("name") == "" {
		found = append(found, manifest.Problem{Field: "type", Message: "The event has no name, and the type's label, which would be the title, " + wrong + "."})
	}
	if wrong := tooLong(e.Shape.Template, limits.Template); wrong != "" {
		found = append(found, manifest.Problem{Field: "type", Message: "The name of the type's template " + wrong + "."})
	}
	for _, tag := range e.Shape.Tags {
		if wrong := tooLong(tag, limits.Tag); wrong != "" {
			found = append(found, manifest.Problem{Field: "type", Message: "The type's tag " + clip.Text(tag, 40) + " " + wrong + "."})
		}
	}
	return found
}
