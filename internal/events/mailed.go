package events

import (
	"context"
	"encoding/json"
	"net/mail"
	"net/url"
	"strings"
	"time"

	ical "github.com/arran4/golang-ical"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/dates"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file is what a mail to a registrant says of an event (docs/mail.md).

// Mailed is what a mail says of an event. Texts are one line, "" for none.
type Mailed struct {
	Name, When, Where string
	Page              string // the URL of the event's page
	Link              string // the online event link
}

// Mailed writes what a mail says of an event. A language is one of messages.
func (e *Event) Mailed(language string) Mailed {
	values := e.shown()
	m := Mailed{Name: oneLine(textOf(values, "name")), When: e.When().Text(language), Page: e.Post.URL}
	m.Where = clip.Text(oneLine(textOf(values, "location")), maxPlace)
	if u, err := url.Parse(e.Text("platform_url")); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && e.Status == Published {
		m.Link = u.String()
	}
	return m
}

// MomentText writes a moment in the event's time zone.
func (e *Event) MomentText(language string, at time.Time) string {
	return dates.In(language).Moment(at.In(e.When().Zone()))
}

// ScheduleText writes when and where an event was, in its time zone.
func (e *Event) ScheduleText(language string, was Schedule) string {
	zone := e.When().Zone()
	w := When{AllDay: was.AllDay, zone: zone, HasEnd: was.End != "", EndsWithDay: !was.AllDay && was.End != "" && was.Clock == ""}
	if was.AllDay {
		w.Start, _ = time.ParseInLocation(dateFormat, was.Start, zone)
		w.End = w.Start.AddDate(0, 0, 1)
		if last, err := time.ParseInLocation(dateFormat, was.End, zone); err == nil {
			w.End = last
		}
	} else {
		start, _ := time.Parse(time.RFC3339, was.Start)
		end, err := time.Parse(time.RFC3339, was.End)
		if err != nil {
			end = start
		}
		if !start.IsZero() {
			w.Start, w.End = start.In(zone), end.In(zone)
		}
	}
	return strings.Join(filled(w.Text(language), clip.Text(oneLine(was.Place), maxPlace)), ", ")
}

func filled(texts ...string) (some []string) {
	for _, text := range texts {
		if text != "" {
			some = append(some, text)
		}
	}
	return some
}

// MailedCalendar writes the calendar file of a mail to a registrant, with the online link, and its method (RFC 5546, sections 3.2.1
// and 3.2.5). organizer is who sends the mail. It is nil for an event without a date, or that readers do not find.
func (e *Event) MailedCalendar(organizer string) (file []byte, method string, err error) {
	if e.body == "" {
		return nil, "", nil
	}
	body := e.publicJSON() // as the mail says it, which the platform may not have yet
	method = string(ical.MethodPublish)
	if e.Status == Cancelled {
		method = string(ical.MethodCancel)
	} else if link := e.Text("platform_url"); link != "" {
		if body, err = withLink(body, link); err != nil {
			return nil, "", err
		}
	}
	entry, err := calendarEvent(body)
	if entry == nil || err != nil {
		return nil, "", err
	}
	if from, err := mail.ParseAddress(organizer); err == nil {
		entry.SetOrganizer("mailto:"+from.Address, ical.WithCN(oneLine(from.Name)))
	}
	calendar := ical.NewCalendar()
	calendar.SetProductId(product)
	calendar.SetMethod(ical.Method(method))
	calendar.AddVEvent(entry)
	return []byte(calendar.Serialize(serialization)), method, nil
}

// IsPublic reports whether readers find the event, which they do while it is cancelled too.
func (e *Event) IsPublic() bool { return e.Status.isPublic() && e.body != "" }

// AsText writes a schedule for [ScheduleOf].
func (s Schedule) AsText() string { return encode(s) }

// ScheduleOf reads what AsText has written. ok is false for anything else.
func ScheduleOf(text string) (s Schedule, ok bool) {
	err := json.Unmarshal([]byte(text), &s)
	return s, err == nil
}

// ForMails is what mails say of a site's publication, and where its pages are.
type ForMails struct {
	platform.Publication

	list string
}

// ForMailsOf is for a publication whose list of events is at a path.
func ForMailsOf(p platform.Publication, list string) ForMails { return ForMails{p, list} }

// ForMails is what the platform said of the publication last. It is asked at most once a minute.
func (s *sitePages) ForMails(ctx context.Context, site string) (of ForMails, isKnown bool) {
	p, isKnown := s.known(ctx, site)
	return ForMails{p, s.pages.List}, isKnown
}

// Address is that of a page for registrants of an event, with a query; "" while nobody knows where the publication is.
func (f ForMails) Address(event, page, query string) string {
	u, err := url.Parse(f.URL)
	if f.list == "" || err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: f.list + "/" + event + "/" + page, RawQuery: query}).String()
}
