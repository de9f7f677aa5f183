package events

// These are who may register for an event: its access.
const (
	AccessAnyone = "anyone"
	AccessFree   = "free"
	AccessPaid   = "paid"
)

// accessOf returns who may register for an event, "" if its editor has not said so in a way
// that can be published. Nothing else reads the value: white space around it is ignored
// everywhere.
func accessOf(values map[string]any) string {
	switch access := textOf(values, "access"); access {
	case AccessAnyone, AccessFree, AccessPaid:
		return access
	}
	return ""
}
