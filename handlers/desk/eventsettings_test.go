package desk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// The settings are kept, and what is wrong with them is said beside them.
func TestEventSettings(t *testing.T) {
	h := newHarness(t)
	if got, want := h.post("event-settings", "Editor", "image_size", " 1600 x 900 px ", "calendar_name", "Events of the Daily ", "registered", "See you\r\nthere", "event_passed", " ").text(t), "The settings were saved. "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q at its start", got, want)
	}
	settings, err := h.Events.Settings(t.Context(), "daily")
	if diff := cmp.Diff(events.Settings{ImageSize: "1600 x 900 px", CalendarName: "Events of the Daily", Messages: map[string]string{"registered": "See you\nthere"}}, settings); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	h.Manifest("nightly", "{manifest_version: 1, events: {types: {meetup: {post_template: custom-meetup}}}}")
	if got, want := inputs(h.get("events?new=", "Editor")), "Featured image: input type=url f.feature_image (Recommended: 1600 x 900 px.)"; !slices.Contains(got, want) {
		t.Errorf("got %q, want %q among them", got, want)
	}
	page := h.post("event-settings", "Editor", "image_size", strings.Repeat("9", 200), "calendar_name", strings.Repeat("9", 201))
	if want := "The settings were not saved: Default Featured Image Size must be a short text such as 1600 x 900 px. Name of the calendar must be a short text such as Events of the Daily."; !strings.Contains(page.Text, want) || len(inputs(page)) != 10 {
		t.Errorf("got %q, want %q in it", page.Text, want)
	}
}

// Beside each message stands what readers see with it, and without it, in the publication's language.
func TestMessagesAsReadersSeeThem(t *testing.T) {
	h := newHarness(t)
	h.post("event-settings", "Editor", "registered", "See you <there>", "registration_closed", "Come to the next one.")
	var got []string
	for n := range h.get("event-settings", "Editor").body.Descendants() {
		if class := attribute(n, "class"); class == "when" || strings.HasPrefix(class, "seen-text") || class == "seen-email" || class == "seen-button" {
			got = append(got, textOf(n))
		}
	}
	if diff := cmp.Diff([]string{
		"Du kannst dich für diese Veranstaltung anmelden.", "Anmelden",
		"Melde dich mit deiner E-Mail-Adresse an.", "E-Mail-Adresse", "Anmelden",
		"Diese Veranstaltung ist für zahlende Mitglieder. Logge dich ein, um dich anzumelden.", "E-Mail-Adresse", "Einloggen",
		"Diese Veranstaltung ist für zahlende Mitglieder. Wechsle zu einer bezahlten Mitgliedschaft, um dich anzumelden.", "Mitgliedschaften ansehen",
		"See you <there>", "Anmeldung stornieren",
		"After the deadline", "Come to the next one.",
		"All places are taken", "Alle Plätze sind vergeben. Come to the next one.",
		"The event is cancelled", "Come to the next one.",
		"Was registered, and the event is cancelled", "Du warst angemeldet. Come to the next one.",
		"Diese Veranstaltung ist vorbei.",
	}, got); diff != "" {
		t.Errorf("what readers see (-want +got):\n%s", diff)
	}
	if got, want := h.get("event-settings", "Editor").text(t), "The event is cancelled. Without a text readers see: Diese Veranstaltung ist abgesagt."; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

// The preview has its language said to screen readers, and says when the publication's is not known.
func TestLanguageOfMessages(t *testing.T) {
	for name, test := range map[string]struct {
		fails          string
		says, language string
	}{
		"known":     {"", "That of the publication is shown here.", "de"},
		"not known": {"publication", "That of the publication is not known yet, so English is shown here.", "en"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.Ghost.BreakCalls(platformtest.ErrDown, test.fails)
			page := h.get("event-settings", "Editor")
			if !strings.Contains(page.Text, test.says) {
				t.Errorf("got %q, want %q in it", page.Text, test.says)
			}
			languages := make(map[string]int)
			for n := range page.body.Descendants() {
				if attribute(n, "class") == "seen" {
					languages[attribute(n, "lang")]++
				}
			}
			if diff := cmp.Diff(map[string]int{test.language: 10}, languages); diff != "" {
				t.Errorf("languages of the previews (-want +got):\n%s", diff)
			}
		})
	}
}

// Of two editors who have the settings open, each saves what they have changed.
func TestEventSettingsOfTwo(t *testing.T) {
	h := newHarness(t)
	before := hidden(h.get("event-settings", "Editor"), "before")
	h.post("event-settings", "Editor", "before", before, "image_size", "", "calendar_name", "", "can_register", "Write to us.")
	h.post("event-settings", "Owner", "before", before, "image_size", "", "calendar_name", "Our events", "can_register", "", "registered", "Thanks")
	next := hidden(h.get("event-settings", "Owner"), "before")
	h.post("event-settings", "Owner", "before", next, "image_size", "1 x 1 px", "calendar_name", "Our events", "can_register", " Write to us.\r\n", "registered", "")
	settings, err := h.Events.Settings(t.Context(), "daily")
	want := events.Settings{ImageSize: "1 x 1 px", CalendarName: "Our events", Messages: map[string]string{"can_register": "Write to us."}}
	if diff := cmp.Diff(want, settings); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// Which reminders registrants get is kept, and stays while the site sends no mails.
func TestRemindersInSettings(t *testing.T) {
	h := newHarness(t)
	without := "Registrants get no mails, since the option mail of whoever runs Caddy names no mail server."
	if got := h.get("event-settings", "Editor").text(t); !strings.Contains(got, without) {
		t.Errorf("without mails: got %q, want %q in it", got, without)
	}
	h.SendMails()
	page := h.get("event-settings", "Editor")
	if strings.Contains(page.Text, without) {
		t.Errorf("got %q, want no %q in it", page.Text, without)
	}
	checked := make(map[string]bool)
	for input := range elements(page.body, "input") {
		if attribute(input, "type") == "checkbox" {
			checked[attribute(input, "name")] = slices.ContainsFunc(input.Attr, func(a html.Attribute) bool { return a.Key == "checked" })
		}
	}
	if diff := cmp.Diff(map[string]bool{"reminder_day": true, "reminder_hour": false}, checked); diff != "" {
		t.Errorf("what is checked at first (-want +got):\n%s", diff)
	}
	before := hidden(page, "before")
	h.post("event-settings", "Editor", "before", before, "mails", "1", "reminder_hour", "on")
	h.post("event-settings", "Owner", "before", before, "mails", "1", "reminder_day", "on", "calendar_name", "Ours")
	h.Site.Events.SendsMail = false
	h.post("event-settings", "Owner", "calendar_name", "Our events")
	settings, err := h.Events.Settings(t.Context(), "daily")
	want := events.Settings{CalendarName: "Our events", Messages: map[string]string{}, Mails: events.MailSettings{NoDay: true, Hour: true}}
	if diff := cmp.Diff(want, settings); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// For how many hours a free place is offered is a number, which is kept beside what others save meanwhile.
func TestHoursOfOffers(t *testing.T) {
	h := newHarness(t)
	field := func(page shown) (value string) {
		for _, line := range inputs(page) {
			if strings.Contains(line, "offer_hours") {
				value = line
			}
		}
		return value
	}
	hours := func() int {
		settings, err := h.Events.Settings(t.Context(), "daily")
		if err != nil {
			t.Fatalf("h.Events.Settings: %v", err)
		}
		return settings.Mails.OfferHours
	}
	const without = "Hours for which a free place is offered: input type=number offer_hours min=1 max=168"
	page := h.get("event-settings", "Editor")
	if got := field(page); !strings.HasPrefix(got, without) {
		t.Errorf("at first %q, want %q", got, without)
	}
	before := hidden(page, "before")
	for _, step := range []struct {
		name, typed string
		form        []string
		want        int
		says        string
	}{
		{"a day and a half", " 36 ", nil, 36, "The settings were saved."},
		{"without the field", "", []string{"before", before, "calendar_name", "Ours"}, 36, "The settings were saved."},
		{"saved by somebody else", "", []string{"before", before, "offer_hours", ""}, 36, "The settings were saved."},
		{"too many", "169", nil, 36, "The settings were not saved: A free place is offered for 1 to 168 hours."},
		{"none", "0", nil, 36, "A free place is offered for 1 to 168 hours."},
		{"no number", "a day", nil, 36, "A free place is offered for 1 to 168 hours."},
		{"with mails", "12", []string{"mails", "1", "reminder_day", "on"}, 12, "The settings were saved."},
		{"the default again", "", []string{"offer_hours", ""}, 0, "The settings were saved."},
	} {
		form := step.form
		if step.typed != "" {
			form = append(form, "offer_hours", step.typed)
		}
		page := h.post("event-settings", "Editor", form...)
		if got := hours(); got != step.want || !strings.Contains(page.Text, step.says) {
			t.Errorf("%s: %d hours, %s, want %d, and %q", step.name, got, page.Text, step.want, step.says)
		}
		if want := "value=" + step.typed; strings.Contains(step.says, "A free place") && !strings.Contains(field(page), want) {
			t.Errorf("%s: %q, want %q in it", step.name, field(page), want)
		}
	}
}

// The texts of mails are kept in one paragraph each. Beside each stands what readers get with it, and without it.
func TestTextsOfMails(t *testing.T) {
	h := newHarness(t)
	h.SendMails()
	form := []string{"mails", "1", "reminder_day", "on"}
	before := hidden(h.get("event-settings", "Editor"), "before")
	h.post("event-settings", "Editor", append(form, "before", before, "mail_reminder", " Bring\r\n\r\na <friend>. ", "mail_invitation", "Hurry.")...)
	h.post("event-settings", "Owner", append(form, "before", before, "mail_moved", "Sorry!", "mail_place", " ", "mail_trial", "x")...)
	settings, err := h.Events.Settings(t.Context(), "daily")
	want := events.Settings{Messages: map[string]string{}, Mails: events.MailSettings{Texts: map[string]string{
		"reminder": "Bring a <friend>.", "invitation": "Hurry.", "moved": "Sorry!",
	}}}
	if diff := cmp.Diff(want, settings); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	page := h.get("event-settings", "Editor")
	seen := make(map[string]string)
	for row := range elements(page.body, "desk-message") {
		for area := range elements(row, "textarea") {
			if name := attribute(area, "name"); strings.HasPrefix(name, "mail_") {
				for n := range row.Descendants() {
					if attribute(n, "class") == "seen" {
						seen[strings.TrimPrefix(name, "mail_")] = textOf(n)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]string{
		"confirmation": "Du bist angemeldet.", "reminder": "Bring a <friend>.", "moved": "Sorry!", "cancelled": "Diese Veranstaltung ist abgesagt.",
		"place": "Ein Platz ist frei geworden, und du bist jetzt angemeldet.", "invitation": "Ein Platz ist frei geworden. Er ist bis … für dich reserviert. Hurry.",
	}, seen); diff != "" {
		t.Errorf("what readers see (-want +got):\n%s", diff)
	}
	if want := "Without a text readers see: Der Termin"; !strings.Contains(page.Text, want) {
		t.Errorf("got %q, want %q in it", page.Text, want)
	}
	page = h.post("event-settings", "Editor", append(form, "mail_place", strings.Repeat("9", 501), "mail_moved", "a\x00b")...)
	if want := "The settings were not saved: The text"; !strings.Contains(page.Text, want) {
		t.Errorf("got %q, want %q in it", page.Text, want)
	}
}

// The address to subscribe to is in the settings, with a button that copies it.
func TestAddressOfCalendar(t *testing.T) {
	h := newHarness(t)
	page := h.get("event-settings", "Editor")
	got := make(map[string]string)
	for code := range elements(page.body, "code") {
		got[attribute(code, "id")] = textOf(code)
	}
	for button := range elements(page.body, "desk-copy") {
		got["copied"] = attribute(button, "for")
	}
	if diff := cmp.Diff(map[string]string{"calendar": "https://news.example.com/ghost/lychgate/events.ics", "copied": "calendar"}, got); diff != "" {
		t.Errorf("the address, and what the button copies (-want +got): %s", diff)
	}
}
