package events

import (
	"slices"
	"time"
)

// Schedule is when and where an event is, as its JSON for readers has it (docs/events_api.md#for-readers-scripts).
type Schedule struct {
	Start  string `json:"start"` // "" for no date
	End    string `json:"end"`   // "" if the event does not say
	AllDay bool   `json:"all_day"`
	Clock  string `json:"event_time_end"`
	Place  string `json:"location"`
}

// Move is a change of a published event's schedule.
type Move struct {
	At   time.Time `json:"at"`
	From Schedule  `json:"from"`
}

// maxMoves bounds the moves of an event that are kept. Who registered before the first of them is told of that.
const maxMoves = 10

// Schedule leaves out what the type of the event does not have.
func (e *Event) Schedule() Schedule {
	public := e.public(Post{}).values()
	allDay, _ := public["all_day"].(bool)
	return Schedule{textOf(public, "start"), textOf(public, "end"), allDay, textOf(public, "event_time_end"), textOf(public, "location")}
}

// noteMove keeps the schedule that readers knew if a change gives a published event another one. Of an event that is cancelled or
// taken back they know it until it is published again.
func (e *Event) noteMove(before Schedule, was Status, now time.Time) {
	switch {
	case was == Published && e.Status != Published:
		e.Known = &before
		return
	case e.Status != Published:
		return
	case e.Known != nil:
		before, e.Known = *e.Known, nil
	case was != Published:
		return // nobody knew of it
	}
	if before != e.Schedule() {
		e.Moves = append(e.Moves, Move{now, before})
		e.Moves = e.Moves[max(len(e.Moves)-maxMoves, 0):]
	}
}

// movesAway are the moves, without the schedule that the event has again.
func (e *Event) movesAway() []Move {
	if len(e.Moves) == 0 {
		return nil
	}
	moves, now := slices.Clone(e.Moves), e.Schedule()
	for i := range moves {
		if moves[i].From == now {
			moves[i].From = Schedule{}
		}
	}
	return moves
}

// wanted is how an event's order and its moves are kept, in one column.
type wanted struct {
	Order
	Moves []Move    `json:"moves,omitempty"`
	Known *Schedule `json:"known,omitempty"`
}
