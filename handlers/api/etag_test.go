package api

import "testing"

// A tag is known again, whatever was done to it on the way.
func TestTagOf(t *testing.T) {
	for value, want := range map[string]string{
		`"12"`: "12", `W/"12"`: "12", `"12-gzip"`: "12", `W/"12-br"`: "12", ` "12" `: "12", "12": "12",
		`"1"2"`: `1"2`, `""`: "", "": "", "*": "*",
	} {
		if got := TagOf(value); got != want {
			t.Errorf("TagOf(%q) = %q, want %q", value, got, want)
		}
	}
}
