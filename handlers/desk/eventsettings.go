package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// eventSettings is what the page of the settings shows.
type eventSettings struct {
	Notice    *notice
	Texts     []eventField // the size of pictures, the name of the calendar, and how long places are offered
	Messages  []eventMessage
	Language  string         // of the publication, English where there are no messages in that
	Reminders []eventField   // nil for a site that sends no mails
	Mails     []eventMessage // the same
	Problems  []eventField
	Calendar  string // to which readers subscribe, "" for none
	Before    string // the settings that the form was made of, as JSON

	IsLanguageKnown bool // the platform has said which it is
}

// eventMessage is the text of a messaging state, and what readers see with it.
type eventMessage struct {
	eventField

	Seen     []seenMessage
	Language string // of Seen
}

// seenMessage is what the block on an event's page shows a reader.
type seenMessage struct {
	When          string // "" for always
	First         string // ours, which comes before the text that staff write
	Default       string // ours, in its place while there is none
	Email, Button string // labels of what readers type into and press, "" for none
	IsRegistered  bool
}

// Text is what the block shows with what staff have written, which is cut here.
func (s seenMessage) Text(written string) string {
	written = cmp.Or(clip.Text(strings.TrimSpace(written), maxMessage), s.Default)
	if s.First != "" && written != "" {
		return s.First + "\n" + written
	}
	return s.First + written
}

// messagingStates are what readers can be told of an event (docs/registration.md#states).
var messagingStates = []struct {
	name        messaging.State
	label, help string
}{
	{
		messaging.CanRegister, "Can register",
		"For a member who may register. Newsletters and readers without JavaScript have it too, as the link to the event's page.",
	},
	{messaging.LoginRequiredFree, "Login required, free event", "For a guest, where anyone or each member may register."},
	{messaging.LoginRequiredPaid, "Login required, paid event", "For a guest, where paying members may register."},
	{messaging.UpgradeRequired, "Upgrade required", "For a member who does not pay, where paying members may register."},
	{messaging.Registered, "Registered", "For readers who are registered, also after the deadline."},
	{
		messaging.RegistrationClosed, "Registration closed",
		"For readers who are not registered, after the deadline, once all places are taken, or if the event is cancelled. If an event is full, readers see our text first, and then yours. The same holds for readers who were registered for a cancelled event.",
	},
	{messaging.EventPassed, "Event passed", "For everybody, once the event is over."},
}

// mailTexts are the mails whose text staff may write (docs/mail.md#texts).
var mailTexts = []struct{ kind, label, help string }{
	{mails.Confirmation, "Confirmation", "For who has registered, or was added by staff."},
	{mails.Reminder, "Reminder", ""},
	{mails.Moved, "Changed date or place", "What it was stands below."},
	{mails.Cancelled, "Cancelled event", ""},
	{mails.Place, "Place from the waiting list", "For who has moved up, and is registered now."},
	{mails.Invitation, "Invitation from the waiting list", "Readers see our text first, with the time until which the place is kept, and then yours."},
}

// seenMail is what a mail says first, in the publication's language.
func seenMail(kind, language string) []seenMessage {
	if kind == mails.Invitation {
		return []seenMessage{{First: mails.Lead(kind, language, "…")}}
	}
	return []seenMessage{{Default: mails.Lead(kind, language, "")}}
}

// seenIn is what readers see in a state, in the publication's language.
func seenIn(state messaging.State, language string) []seenMessage {
	words := messaging.LabelsOf(language)
	seen := seenMessage{Default: messaging.Message(language, state, ""), IsRegistered: state == messaging.Registered}
	switch state {
	case messaging.CanRegister:
		seen.Button = words.Register
	case messaging.LoginRequiredFree:
		seen.Email, seen.Button = words.Email, words.Register
	case messaging.LoginRequiredPaid:
		seen.Email, seen.Button = words.Email, words.SignIn
	case messaging.UpgradeRequired:
		seen.Button = words.Plans
	case messaging.Registered:
		seen.Button = words.Cancel
	case messaging.RegistrationClosed:
		seen.When = "After the deadline"
		return []seenMessage{
			seen,
			{When: "All places are taken", First: messaging.Message(language, state, messaging.IsFull)},
			{When: "The event is cancelled", Default: messaging.Message(language, state, messaging.IsCancelled)},
			{When: "Was registered, and the event is cancelled", First: messaging.WereRegistered(language)},
		}
	case messaging.EventPassed:
	}
	return []seenMessage{seen}
}

const (
	imageSizeField    = "image_size"
	calendarNameField = "calendar_name"
	dayField          = "reminder_day"
	hourField         = "reminder_hour"

	// hasMailsField is of a form with the settings of mails: a checkbox that is not checked sends nothing.
	hasMailsField = "mails"
)

// privacyTimeout bounds the question for the token in the calendar's address, without which the page shows it. With less than 2 seconds
// left Ghost is not asked at all.
const privacyTimeout = 2500 * time.Millisecond

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
		name := string(state.name)
		if text := formText(form, name); strings.TrimSpace(text) != "" {
			settings.Messages[name] = text
		}
	}
	now, err := v.events.Settings(ctx, v.site.Name)
	if err != nil {
		return nil, away(err)
	}
	settings.Mails = now.Mails
	if form.Has(hasMailsField) {
		settings.Mails = events.MailSettings{
			NoDay: !form.Has(dayField), Hour: form.Has(hourField), OfferHours: now.Mails.OfferHours, Texts: make(map[string]string),
		}
		for _, kind := range events.MailKinds() {
			settings.Mails.Texts[kind] = strings.TrimSpace(formText(form, events.MailField(kind)))
		}
	}
	if form.Has(events.OfferField) { // which pages of the last release lack
		settings.Mails.OfferHours = offerHours(form.Get(events.OfferField))
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

// offerHours is 0 for the default, and -1 for what is no number of hours.
func offerHours(text string) int {
	text = strings.TrimSpace(text)
	hours, err := strconv.Atoi(text)
	if text != "" && (err != nil || hours < 1) {
		return -1
	}
	return hours
}

func (v *view) settingsPage(ctx context.Context, settings events.Settings, problems []manifest.Problem, before string) *eventSettings {
	of := fieldsOf{
		problems: problems, picture: func(string) string { return "" },
		values: map[string]any{
			imageSizeField: settings.ImageSize, calendarNameField: settings.CalendarName,
			dayField: !settings.Mails.NoDay, hourField: settings.Mails.Hour,
		},
	}
	if hours := settings.Mails.OfferHours; hours > 0 {
		of.values[events.OfferField] = float64(hours)
	} else if hours < 0 {
		of.values[events.OfferField] = formText(v.request.PostForm, events.OfferField) // as it was typed
	}
	for state, text := range settings.Messages {
		of.values[state] = text
	}
	for kind, text := range settings.Mails.Texts {
		of.values[events.MailField(kind)] = text
	}
	shown := &eventSettings{Before: before, Calendar: v.events.Posts.Calendar(ctx, v.site.Name, v.origin())}
	shown.Language, shown.IsLanguageKnown = v.events.Posts.Language(ctx, v.site.Name)
	if host, ok := v.site.Events.Host.(platform.ReaderHost); ok && shown.Calendar != "" && !v.visitor.IsRecalled {
		ctx, cancel := context.WithTimeout(ctx, privacyTimeout)
		defer cancel()
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
	shown.Texts = v.siteTexts(ctx, add)
	if v.site.Events.SendsMail {
		shown.Reminders = []eventField{
			add(dayField, "Remind registrants a day before an event", "toggle", ""),
			add(hourField, "Remind registrants an hour before an event", "toggle",
				"Not sent to those whom another mail told within two hours before when the event is."),
		}
		for _, m := range mailTexts {
			field := add(events.MailField(m.kind), m.label, "textarea", m.help)
			field.Most = events.MaxMailText
			shown.Mails = append(shown.Mails, eventMessage{field, seenMail(m.kind, shown.Language), shown.Language})
		}
	}
	for _, state := range messagingStates {
		field := add(string(state.name), state.label, "textarea", state.help)
		shown.Messages = append(shown.Messages, eventMessage{field, seenIn(state.name, shown.Language), shown.Language})
	}
	return shown
}

// siteTexts are the fields that are of neither messages nor mails.
func (v *view) siteTexts(ctx context.Context, add func(key, label, kind, help string) eventField) []eventField {
	list := []eventField{
		add(imageSizeField, "Default Featured Image Size", "text",
			"Recommended for the featured image where an event type says nothing, such as 1600 x 900 px. Left empty, it is "+manifest.BuiltInImageSize+". Editors read it; the frame of Crop Image does not follow it."),
		add(calendarNameField, "Name of the calendar", "text",
			"Readers who subscribe to all events see it. Left empty, it is the title of the publication, "+cmp.Or(v.events.Posts.Title(ctx, v.site.Name), v.site.Name)+"."),
		add(events.OfferField, "Hours for which a free place is offered", "number", fmt.Sprintf(
			"To the first on a waiting list, where an event offers free places: from 1 to %d. Left empty, it is %d. A change counts for later offers. None lasts longer than the deadline, or the start of the event.",
			events.MaxOfferHours, events.DefaultOfferHours)),
	}
	list[2].Min, list[2].Max = "1", strconv.Itoa(events.MaxOfferHours)
	return list
}
