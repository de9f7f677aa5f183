package ghost

import "testing"

// A CRM is told which members pay, and which need not.
func TestStatusSaysWhichMembersPay(t *testing.T) {
	for of, want := range map[string]string{"free": "free", "paid": "paid", "comped": "complimentary", "": "free", "gift": "free"} {
		if got := status(of); got != want {
			t.Errorf("status(%q) = %q, want %q", of, got, want)
		}
	}
}
