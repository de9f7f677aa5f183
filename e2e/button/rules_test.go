package button

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const script = `<script src="/ghost/lychgate/inbox-button.js" defer></script>`

func TestBuiltInDomain(t *testing.T) {
	p := visit(t, script+`<lychgate-inbox-button recipient="jane@gmail.com" sender="news@daily.example"></lychgate-inbox-button>`, before(clock))
	want := &button{
		Provider: "gmail",
		Href:     "https://mail.google.com/mail/u/jane%40gmail.com/#search/from%3A(news%40daily.example)+in%3Aanywhere+newer_than%3A1h",
		Text:     "Open Gmail", Lang: "en", Target: "_blank", Rel: "noopener noreferrer",
	}
	if diff := cmp.Diff(want, p.button()); diff != "" {
		t.Error(diff)
	}
	if got := js[int](p, "probe.advance(10000)"); got != 0 {
		t.Errorf("%d requests", got)
	}
}
