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

	// DeadlineIsDay means that the deadline has no time.
	DeadlineIsDay bool

	// Moves are those of the event. One from where it is now has no schedule.
	Moves []Move

	// AskName is whether guests are asked for their name as they register.
	AskName manifest.NameQuestion
}

// Terms leaves out what the event's type does not have.
func (e *Event) Terms() Terms {
	values := e.shown()
	w := whenOf(values)
	t := Terms{
		Access: accessOf(values), End: w.End, Deadline: w.Deadline, DeadlineIsDay: w.DeadlineIsDay, IsCancelled: e.Status == Cancelled, AskName: e.Shape.AskName,
		Moves: e.movesAway(),
	}
	if most, ok := wholeNumber(values["max_attendees"]).(int64); ok {
		t.Most = int(most)
	}
	return t
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
