package desk

import (
	"context"
	"net/url"
)

// showEvents shows the list, the editor of an event, or a question about one.
func showEvents(ctx context.Context, v *view) (any, error) {
	ev, err := v.eventsView(ctx)
	if err != nil {
		return nil, err
	}
	query := v.request.URL.Query()
	switch id := query.Get("event"); {
	case id != "" && query.Has("members"):
		return ev.members(ctx, id)
	case id != "" && query.Has("confirm"):
		return ev.ask(ctx, id, query.Get("confirm"))
	case id != "":
		return ev.edit(ctx, id, query.Get("type"))
	case query.Has("new"):
		return ev.editNew(ctx, query.Get("new"))
	}
	return ev.list(ctx)
}

// isPublishing reports whether a form changes what readers see of an event, which is brought to its
// post later if need be. Whether one that is saved is published, save knows.
func isPublishing(form url.Values) bool {
	switch form.Get("do") {
	case "publish", "unpublish", "cancel", "save", "card", publishSeries:
		return true
	}
	return false
}

// changeEvents does what a form says.
func changeEvents(ctx context.Context, v *view) (any, error) {
	ev, err := v.eventsView(ctx)
	if err != nil {
		return nil, err
	}
	do := v.request.PostForm.Get("do")
	if do == "" && v.request.PostForm.Has("over") {
		do = "save"
	}
	switch do {
	case "type":
		return ev.retype(ctx)
	case "save", "publish", "write":
		return ev.save(ctx, do)
	case publishSeries:
		return ev.publishSeries(ctx, v.request.PostForm)
	case "unpublish", "cancel", "delete", "duplicate", "card":
		return ev.change(ctx, do)
	}
	return nil, errForm
}
