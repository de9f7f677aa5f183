package emailaddr

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// Nobody can keep the edge busy with an address that is as long as a request has room for.
func TestTimeIsLinear(t *testing.T) {
	lineartest.CheckTexts(t, lineartest.Text{
		Name: "an address", Start: "jane@", Parts: []string{"漢", "漢.", "a", "a.", "-", "@", "xn--", "xn--@.", "(", "\"", "<", "ä"},
		Read: func(s string) {
			Key(s)
			Forms(s)
			ASCII(s)
			Same(s, s+"a")
			IsValid(s)
			HasDomain(s)
		},
	})
}
