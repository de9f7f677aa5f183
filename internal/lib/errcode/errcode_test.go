package errcode

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An error keeps its description when it is wrapped, and is equal to no other.
func TestWrappedErrorsKeepTheirDescription(t *testing.T) {
	gone := New(Gone, "the post is gone", "There is no such post.")
	tooMany := NewWait(Busy, time.Second, "too many", "Wait a second.")
	for _, test := range []struct {
		err  error
		want Description
		ok   bool
	}{
		{gone, Description{Code: Gone, Message: "There is no such post."}, true},
		{tooMany, Description{Busy, "Wait a second.", time.Second}, true},
		{fmt.Errorf("reading: %w", gone), Description{Code: Gone, Message: "There is no such post."}, true},
		{errors.Join(errors.New("disk full"), tooMany), Description{Busy, "Wait a second.", time.Second}, true},
		{errors.New("disk full"), Description{}, false},
		{nil, Description{}, false},
	} {
		got, ok := Of(test.err)
		if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
			t.Errorf("%v: described %t, want %t, -want +got:\n%s", test.err, ok, test.ok, diff)
		}
	}
	if other := New(Gone, "the post is gone", "There is no such post."); errors.Is(gone, other) {
		t.Error("errors.Is: got true for another error of the same text, want false")
	}
}
