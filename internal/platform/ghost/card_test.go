package ghost

import (
	"encoding/json"
	"fmt"
	stdhtml "html"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// nodesOf is a text with some nodes.
func nodesOf(nodes ...string) string {
	return `{"root": {"children": [` + strings.Join(nodes, ", ") + `], "direction": null, "type": "root", "version": 1}}`
}

// cardNode is an HTML card, as Ghost's editor writes it.
func cardNode(html string) string {
	text, _ := json.Marshal(html)
	return `{"type":"html","version":1,"html":` + string(text) + `,"visibility":{"web":{"nonMember":true}}}`
}

// A card is added, changed where the editor has moved it, and deleted. What else is in the text stays, byte for byte.
func TestCardOfAText(t *testing.T) {
	const one, two, other = `<lychgate-event data-sum="1"><p>A & "B"</p></lychgate-event>`, "<lychgate-event>two</lychgate-event>", `{"type":"html","html":"<p></p>"}`
	const words, image = `{"type":"paragraph","children":[{"text":"<lychgate-event> in words"}]}`, `{"type":"image","html":"<lychgate-event>"}`
	const list, another = "<lychgate-events limit=3></lychgate-events>", `<LYCHGATE-EVENT map="<"EVENT = harbour></lychgate-event>`
	added, _ := json.Marshal(two)
	first := `{"type":"html","version":1,"html":` + string(added) + `}`
	both := nodesOf(cardNode(one), cardNode(one))
	diff := cmp.Diff([]string{nodesOf(cardNode(one), cardNode(two)), nodesOf(cardNode(one)), strings.Replace(both, "[", "["+first+",", 1)}, []string{withCard(both, 1, two), withCard(both, 1, ""), withCard(both, 2, two)})
	if diff != "" {
		t.Errorf("the second of two, deleted, and one above both (-want +got): %s", diff)
	}
	for name, test := range map[string]struct {
		text, had, html, want string
	}{
		"none in an empty text":                {newText(""), "", two, strings.Replace(newText(""), `[{"children"`, "["+first+`,{"children"`, 1)},
		"none without a node":                  {nodesOf(), "", two, nodesOf(first)},
		"none beside others":                   {nodesOf(words, image, other), "", two, strings.Replace(nodesOf(words, image, other), "[", "["+first+",", 1)},
		"where it was moved":                   {nodesOf(words, other, cardNode(one), image), one, two, strings.Replace(nodesOf(words, other, cardNode(one), image), cardNode(one), cardNode(two), 1)},
		"the first of two":                     {nodesOf(cardNode(one), cardNode(one)), one, two, nodesOf(cardNode(two), cardNode(one))},
		"beside a list and another event":      {nodesOf(cardNode(list), cardNode(another), cardNode(one)), one, two, nodesOf(cardNode(list), cardNode(another), cardNode(two))},
		"the same":                             {nodesOf(cardNode(two)), two, two, nodesOf(cardNode(two))},
		"deleted from the end":                 {nodesOf(words, cardNode(one)), one, "", nodesOf(words)},
		"deleted from the start":               {nodesOf(cardNode(one), words), one, "", strings.Replace(nodesOf(words), "[", "[ ", 1)},
		"deleted, the only one":                {nodesOf(cardNode(one)), one, "", nodesOf(emptyParagraph)},
		"deleted, though not there":            {nodesOf(words), "", "", nodesOf(words)},
		"among more nodes than Ghost may send": {nodesOf(strings.Repeat("1,", 40_000) + cardNode(one)), "", two, nodesOf(strings.Repeat("1,", 40_000) + cardNode(one))},
		"in no text":                           {"", "", two, ""},
		"in no JSON":                           {"{", "", two, "{"},
		"in JSON of another kind":              {`{"root": 1}`, "", two, `{"root": 1}`},
		"in a list":                            {`[]`, "", two, `[]`},
		"in a text without nodes":              {`{"root": {"children": null}}`, "", two, `{"root": {"children": null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.had, eventPost{Text: test.text}.event().Card); diff != "" {
				t.Errorf("the card before (-want +got): %s", diff)
			}
			if diff := cmp.Diff(test.want, withCard(test.text, 0, test.html)); diff != "" {
				t.Errorf("the text (-want +got): %s", diff)
			}
		})
	}
}

// Whatever a text has, it is JSON afterwards, with the card, and without it again once that is deleted.
func FuzzCardOfAText(f *testing.F) {
	for _, text := range []string{newText(""), nodesOf(), nodesOf(cardNode("<lychgate-event>"), cardNode("<lychgate-event>")), `{"root":{"children":[1,[],{}]},"root":{}}`, `{"root":{"children":[{"type":"html","html":"<lychgate-event","html":2}]}}`} {
		f.Add(text, "<lychgate-event>\u2028</lychgate-event>")
	}
	f.Fuzz(func(t *testing.T, text, html string) {
		html = stdhtml.EscapeString(strings.ToValidUTF8(html, "")) + "<lychgate-event>"
		had := eventPost{Text: text}.event()
		changed := withCard(text, 0, html)
		if !had.HasText {
			if changed != text {
				t.Fatalf("a text of another kind became %q, want it as it was", changed)
			}
			return
		}
		if has := (eventPost{Text: changed}).event(); has.Card != html {
			t.Fatalf("%q has the card %q, want %q", changed, has.Card, html)
		}
		if deleted := withCard(changed, 0, ""); !json.Valid([]byte(deleted)) {
			t.Fatalf("without its card, %q is no JSON: %q", changed, deleted)
		}
		if had.Card == "" && len(changed) < len(text) {
			t.Fatalf("%q became %q, which is shorter", text, changed)
		}
	})
}

func TestCardOfATextIsLinear(t *testing.T) {
	lineartest.Check(t, 1<<20, func(size int) string {
		return nodesOf(strings.Repeat(cardNode("<p>")+",", size/100) + cardNode("<p>"))
	}, func(text string) { withCard(text, 0, "<lychgate-event>") })
}

// Staff write a text in the moment in which the card of its post changes, 40 times. Each keeps what the other wrote.
func TestRealTextDuels(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	card := func(n int) string {
		return fmt.Sprintf("<lychgate-event data-sum=\"%d\"><p>%d</p></lychgate-event>", n, n)
	}
	paragraph := func(text string) string {
		return `{"children":[{"detail":0,"format":0,"mode":"normal","style":"","text":"` + text + `","type":"extended-text","version":1}],"direction":"ltr","format":"","indent":0,"type":"paragraph","version":1}`
	}
	const posts, rounds = 8, 5
	var all sync.WaitGroup
	for n := range posts {
		id := addPost(t, c, map[string]any{"title": "Duel", "slug": fmt.Sprint(slug, "-", n), "status": "draft", "lexical": nodesOf(paragraph("zero"), cardNode(card(0)))})
		all.Go(func() {
			for round := 1; round <= rounds; round++ {
				var duel sync.WaitGroup
				duel.Go(func() {
					for range 20 { // who is told that somebody else has changed it reads it again
						p, err := c.getEventPost(t.Context(), id)
						if err != nil {
							t.Errorf("c.getEventPost: %v", err)
							return
						}
						text := strings.Replace(p.Text, `"children":[`, `"children":[`+paragraph(fmt.Sprint("round ", round))+",", 1)
						err = c.postClient.call(t.Context(), "PUT", "/posts/"+id+"/", nil, updates{[]map[string]any{{"lexical": text, "updated_at": p.UpdatedAt}}}, nil)
						if err == nil {
							return
						}
						if !isCollision(err) {
							t.Errorf("staff's change: %v", err)
							return
						}
					}
					t.Error("staff's change collided 20 times")
				})
				if p, err := c.ChangePost(t.Context(), id, func(p platform.EventPost) platform.EventPost {
					p.Card = card(round)
					return p
				}); err != nil || p.Card != card(round) {
					t.Errorf("round %d: %v, the card %q, want %q", round, err, p.Card, card(round))
				}
				duel.Wait()
				p, err := c.getEventPost(t.Context(), id)
				if err != nil || p.event().Card != card(round) || strings.Count(p.Text, `"text":"round `) != round || !strings.Contains(p.Text, "zero") {
					t.Errorf("after round %d: %v, the text %s, want all that was written", round, err, p.Text)
					return
				}
			}
		})
	}
	all.Wait()
}
