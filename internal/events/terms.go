package events

import (
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// Terms are the conditions of registering for an event.
type Terms struct {
	Access      string    // AccessAnyone, AccessFree or AccessPaid; "" means that the event takes no registrations
	End         time.Time // of the event: its start if it does not say, the end of its day without a time; zero for never
	Deadline    time.Time // zero for none
	Most        int       // registrations, 0 for any number
	IsCancelled bool

	// Waiting is whether readers can wait for a place while all are taken: WaitingFills, WaitingInvites, or "" if they cannot. Start is
	// when the event starts, zero for never.
	Waiting string
	Start   time.Time

	// DeadlineIsDay means that the deadline has no time.
	DeadlineIsDay bool

	// Moves are those of the event. One from where it is now has no schedule.
	Moves []Move

	// Reminders are those that registrants get, "" for those that the site's have: see [MailSettings.Reminders].
	Reminders string

	// AskName is whether guests are asked for their name as they register.
	AskName manifest.NameQuestion
}

// Terms leaves out what the event's type does not have.
func (e *Event) Terms() Terms {
	values := e.shown()
	w := whenOf(values)
	t := Terms{
		Access: accessOf(values), End: w.End, Deadline: w.Deadline, DeadlineIsDay: w.DeadlineIsDay, IsCancelled: e.Status == Cancelled, AskName: e.Shape.AskName,
		Moves: e.movesAway(), Reminders: textOf(values, reminders),
	}
	if most, ok := wholeNumber(values["max_attendees"]).(int64); ok {
		t.Most = int(most)
	}
	t.Start = w.Start
	if e.has("max_attendees") {
		t.Waiting = waitingOf(values)
	}
	return t
}

// How places that become free are given to those who wait.
const (
	WaitingFills   = "first" // to the first in line
	WaitingInvites = "invite"
	waitingOff     = "off"
	waitingList    = "waiting_list" // the key of the field; manifests do not know it
)

// Which reminders registrants of an event get.
const (
	remindDay  = "day"
	remindHour = "hour"
	remindBoth = "both"
	remindNone = "none"
	reminders  = "reminders" // the key of the field; manifests do not know it
)

// Reminders are whether registrants are reminded a day and an hour before an event.
func (s MailSettings) Reminders(t Terms) (day, hour bool) {
	switch t.Reminders {
	case remindDay, remindHour, remindBoth, remindNone:
		return t.Reminders == remindDay || t.Reminders == remindBoth, t.Reminders == remindHour || t.Reminders == remindBoth
	}
	return !s.NoDay, s.Hour
}

// waitingOf is WaitingFills unless the event says something else.
func waitingOf(values map[string]any) string {
	switch text := textOf(values, waitingList); text {
	case WaitingInvites:
		return text
	case waitingOff:
		return ""
	}
	return WaitingFills
}

// LastMoment is until when those who wait get places: the deadline, or the start if there is none; zero for ever.
func (t Terms) LastMoment() time.Time {
	if !t.Deadline.IsZero() && (t.Start.IsZero() || t.Deadline.Before(t.Start)) {
		return t.Deadline
	}
	return t.Start
}

// MovesUp reports whether places that become free are given to those who wait.
func (t Terms) MovesUp(now time.Time) bool {
	last := t.LastMoment()
	return t.Waiting != "" && t.isOpen(now) && (last.IsZero() || now.Before(last))
}

// IsSame reports whether as many can register, for as long, get free places in the same way, and are reminded at the same times.
func (t Terms) IsSame(other Terms) bool {
	return t.Most == other.Most && t.Waiting == other.Waiting && t.Access == other.Access && t.Deadline.Equal(other.Deadline) &&
		t.Reminders == other.Reminders
}

// IsOver reports whether the event has ended.
func (t Terms) IsOver(now time.Time) bool { return !t.End.IsZero() && !now.Before(t.End) }

// IsLate reports whether the deadline has passed.
func (t Terms) IsLate(now time.Time) bool { return !t.Deadline.IsZero() && !now.Before(t.Deadline) }

// isOpen reports whether members whom the access admits can register while there are places.
func (t Terms) isOpen(now time.Time) bool {
	return t.Access != "" && !t.IsCancelled && !t.IsOver(now) && !t.IsLate(now)
}

// MovedFrom is when and where the event was at a moment, nil if it is so now.
func (t Terms) MovedFrom(at time.Time) *Schedule {
	i := slices.IndexFunc(t.Moves, func(m Move) bool { return m.At.After(at) })
	if i < 0 || t.Moves[i].From == (Schedule{}) {
		return nil
	}
	return &t.Moves[i].From
}

// PlacesLeft is at least 0. isLimited is false if any number can register.
func (t Terms) PlacesLeft(taken int) (left int, isLimited bool) {
	return max(t.Most-taken, 0), t.Most > 0
}

// RegistrantLabels are for the members who register, without the space around them.
func (e *Event) RegistrantLabels() (labels []string) {
	list, _ := e.shown()["rsvp_labels"].([]any)
	for _, entry := range list {
		if label, ok := entry.(string); ok && strings.TrimSpace(label) != "" {
			labels = append(labels, strings.TrimSpace(label))
		}
	}
	return labels
}
