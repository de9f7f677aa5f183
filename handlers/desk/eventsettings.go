package desk

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// eventSettings is what the page of the settings shows.
type eventSettings struct {
	Notice   *notice
	Texts    []eventField // the size of pictures, and the name of the calendar
	Messages []eventField
	Problems []eventField
	Calendar string // to which readers subscribe, "" for none
	Before   string // the settings that the form was made of, as JSON
}

// messagingStates are what readers can be told of an event, with who is told.
var messagingStates = []struct{ name, label, shownTo string }{
	{"can_register", "Can register", "an eligible member who has not registered"},
	{"login_required_free", "Login required, free event", "a guest on a free event"},
	{"login_required_paid", "Login required, paid event", "a guest on a paid event"},
	{"upgrade_required", "Upgrade required", "a free member on a paid event"},
	{"registered", "Registered", "a member who has registered"},
	{"registration_closed", "Registration closed", "everybody after the registration deadline"},
	{"event_passed", "Event passed", "everybody after the event ends"},
}

const (
	imageSizeField    = "image_size"
	calendarNameField = "calendar_name"
)

// showEventSettings shows the settings.
func showEventSettings(ctx context.Context, v *view) (any, error) {
	settings, err := v.events.Settings(ctx, v.site.Name)
	if err != nil {
		return nil, away(err)
	}
	before, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	shown := v.settingsPage(ctx, settings, nil, string(before))
	if v.request.URL.Query().Has("done") {
		shown.Notice = &notice{Text: "The settings were saved."}
	}
	return shown, nil
}

// saveEventSettings keeps what somebody has changed in the form. What others have saved meanwhile stays.
func saveEventSettings(ctx context.Context, v *view) (any, error) {
	form := v.request.PostForm
	settings := events.Settings{
		ImageSize: strings.TrimSpace(formText(form, imageSizeField)), CalendarName: strings.TrimSpace(formText(form, calendarNameField)),
		Messages: make(map[string]string),
	}
	for _, state := range messagingStates {
		if text := formText(form, state.name); strings.TrimSpace(text) != "" {
			settings.Messages[state.name] = text
		}
	}
	now, err := v.events.Settings(ctx, v.site.Name)
	if err != nil {
		return nil, away(err)
	}
	var before events.Settings
	merged := settings
	if json.Unmarshal([]byte(form.Get("before")), &before) == nil {
		merged = now.Merge(before, settings)
	}
	err = v.events.SaveSettings(ctx, v.site.Name, merged)
	if invalid, ok := errors.AsType[*events.InvalidError](err); ok {
		return v.settingsPage(ctx, settings, invalid.Problems, form.Get("before")), nil
	}
	if err != nil {
		return nil, away(err)
	}
	return redirection(url.Values{"done": {"save"}}.Encode()), nil
}

func (v *view) settingsPage(ctx context.Context, settings events.Settings, problems []manifest.Problem, before string) *eventSettings {
	of := fieldsOf{
		problems: problems, picture: func(string) string { return "" },
		values: map[string]any{imageSizeField: settings.ImageSize, calendarNameField: settings.CalendarName},
	}
	for state, text := range settings.Messages {
		of.values[state] = text
	}
	shown := &eventSettings{Before: before, Calendar: v.events.Posts.Calendar(ctx, v.site.Name, v.origin())}
	if host, ok := v.site.Events.Host.(platform.ReaderHost); ok && shown.Calendar != "" {
		if said, err := host.Privacy(ctx); err == nil && said.IsPrivate && said.FeedToken != "" {
			shown.Calendar += "?" + url.Values{"token": {said.FeedToken}}.Encode()
		}
	}
	add := func(key, label, kind, help string) eventField {
		f := of.field(key, label, kind)
		f.Name, f.ID, f.Help = key, "field-"+key, clip.Text(help, maxMessage)
		if f.Problem != "" {
			shown.Problems = append(shown.Problems, f)
		}
		return f
	}
	shown.Texts = []eventField{
		add(imageSizeField, "Default Featured Image Size", "text",
			"Recommended for the featured image where an event type says nothing, such as 1600 x 900 px. Left empty, it is "+manifest.BuiltInImageSize+"."),
		add(calendarNameField, "Name of the calendar", "text",
			"Readers who subscribe to all events see it. Left empty, it is "+v.site.Name+"."),
	}
	for _, state := range messagingStates {
		shown.Messages = append(shown.Messages, add(state.name, state.label, "textarea", "Shown to "+state.shownTo+". Left empty, the theme chooses."))
	}
	return shown
}
