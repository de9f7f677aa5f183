package desk

import "context"

// showEvents shows the list, the editor of an event, or a question about one.
func showEvents(ctx context.Context, v *view) (any, error) {
	ev, err := v.eventsView(ctx)
	if err != nil {
		return nil, err
	}
	query := v.request.URL.Query()
	switch id := query.Get("event"); {
	case id != "" && query.Has("confirm"):
		return ev.ask(ctx, id, query.Get("confirm"))
	case id != "":
		return ev.edit(ctx, id, query.Get("type"))
	case query.Has("new"):
		return ev.editNew(ctx, query.Get("new"))
	}
	return ev.list(ctx)
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
	case "unpublish", "cancel", "delete", "duplicate":
		return ev.change(ctx, do)
	}
	return nil, errForm
}
