package platform

import "context"

// MemberLabeler is a Platform on which single labels of a member can be changed: nothing else of
// the member is touched, whatever somebody else changes at the same moment.
type MemberLabeler interface {
	// LabelsOf finds a member by the UUID, as [Reader] has it. The labels are names. Errors:
	// ErrNotFound.
	LabelsOf(ctx context.Context, uuid string) (id string, labels []string, err error)

	// AddLabel gives the member with an ID a label that the member does not have. The label is
	// made if there is none. Errors: *Refusal.
	AddLabel(ctx context.Context, id, label string) error

	// RemoveLabel takes a label from the member with an ID. It is not an error if the member
	// does not have it, or does not exist.
	RemoveLabel(ctx context.Context, id, label string) error
}
