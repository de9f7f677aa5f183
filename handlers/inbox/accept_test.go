package inbox

import "testing"

func TestAcceptsJSON(t *testing.T) {
	tests := []struct {
		accept []string
		want   bool
	}{
		{[]string{"application/json"}, true},
		{[]string{"Application/JSON; charset=utf-8"}, true},
		{[]string{"text/html", "application/json"}, true},
		{[]string{"text/html, application/json;q=0.1"}, true},
		{[]string{"application/vnd.api+json"}, true},
		{[]string{"application/problem+json;q=1"}, true},
		{[]string{"application/json;q=oops"}, true},

		{nil, false},
		{[]string{""}, false},
		{[]string{"*/*"}, false},
		{[]string{"application/*"}, false},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, false},
		{[]string{"application/json;q=0"}, false},
		{[]string{"application/json;q=0.000, text/html"}, false},
		{[]string{"application/jsonp"}, false},
		{[]string{"json"}, false},
		{[]string{",;,,"}, false},
	}
	for _, test := range tests {
		if got := acceptsJSON(test.accept); got != test.want {
			t.Errorf("acceptsJSON(%q) = %t, want %t", test.accept, got, test.want)
		}
	}
}
