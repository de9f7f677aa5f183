package members

import (
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/fold"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Merge takes over what the platform has of the member. changed is whether that is a
// change. Fields that are pending stay.
func (r Record) Merge(found platform.Member) (after Record, changed bool) {
	after, changed = r.MergeFields(found)
	switch after.Status = found.Status; {
	case found.TierID != "":
		after.TierID = &found.TierID
	case found.Status == "free" && r.Status != "free":
		after.TierID = nil
	}
	changed = changed || after.Status != r.Status ||
		(after.TierID == nil) != (r.TierID == nil) || after.TierID != nil && *after.TierID != *r.TierID
	return after, changed
}

// MergeFields is Merge for the fields that callers of the API can change on the
// platform.
func (r Record) MergeFields(found platform.Member) (after Record, changed bool) {
	after = r
	replaces := func(field Field, differs bool) bool {
		replaced := differs && !r.HasPending(field)
		changed = changed || replaced
		return replaced
	}
	if replaces(EmailField, !emailaddr.Same(r.Email, found.Email)) {
		after.Email = found.Email
	}
	if replaces(NameField, r.Name != found.Name) {
		after.Name = found.Name
	}
	if replaces(NoteField, r.Note != found.Note) {
		after.Note = found.Note
	}
	if labels := asFound(r.Labels, found.Labels); replaces(LabelsField, !slices.Equal(labels, r.Labels)) {
		after.Labels = labels
	}
	if replaces(SubscriptionField, r.Subscribed != found.Subscribed) {
		after.Subscribed = found.Subscribed
	}
	otherNewsletters := r.Newsletters != nil && found.Newsletters != nil && !sameElements(r.ActiveNewsletters(), found.Newsletters)
	if replaces(SubscriptionField, otherNewsletters) {
		after.Newsletters = nil // the choice that was made here is no longer the last
	}
	return after, changed
}

// sameLabels reports whether two sets of labels are the same to the platform,
// which orders them.
func sameLabels(a, b []string) bool { return sameElements(folded(a), folded(b)) }

// asFound is found, but in the order of labels if these are the same labels.
func asFound(labels, found []string) []string {
	if !sameLabels(labels, found) {
		return found
	}
	foundFolded, inOrder := folded(found), make([]string, 0, len(labels))
	for _, label := range folded(labels) {
		inOrder = append(inOrder, found[slices.Index(foundFolded, label)])
	}
	return inOrder
}

func folded(labels []string) []string {
	list := make([]string, 0, len(labels))
	for _, label := range labels {
		list = append(list, fold.Label(label))
	}
	return list
}
