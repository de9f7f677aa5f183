package ghost

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file finds and changes the card of an event in the text of a post, which is Lexical's
// (docs/events.md#in-the-posts-text), and leaves all else of the text as it is, byte for byte.

// hasCard reports whether there is the element of an event's card, ours or one of staff's, and not one that names another
// event.
func hasCard(text string) bool {
	if !strings.Contains(strings.ToLower(text), "<lychgate-event") {
		return false
	}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return false
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := tokens.Token()
			if tag.Data == "lychgate-event" && !slices.ContainsFunc(tag.Attr, func(a html.Attribute) bool { return a.Key == "event" && a.Val != "" }) {
				return true
			}
		}
	}
}

// A text is made of these. Ghost's editor does not open one without a node.
const (
	textStart, textEnd = `{"root":{"children":[`, `],"direction":null,"format":"","indent":0,"type":"root","version":1}}`
	emptyParagraph     = `{"children":[],"direction":null,"format":"","indent":0,"type":"paragraph","version":1}`
)

// newText is the text of a new post, which has a card or nothing.
func newText(html string) string {
	if html == "" {
		return textStart + emptyParagraph + textEnd
	}
	return withCard(textStart+textEnd, 0, html)
}

// timeUnit is the resolution of Ghost's updated_at. Ghost detects a collision by it, so it misses one of two changes
// within a second.
const timeUnit = time.Second

// settledSpan is how old the last change of a post must be, by the Date of a response, so that no later change can have the
// same updated_at. The clocks of Ghost and of a proxy may differ by some seconds.
const settledSpan = 5 * timeUnit

// textCard is where the card of an event is in a text.
type textCard struct {
	html  string // "" for no card
	value span   // of the HTML, as JSON
	node  span   // of the card
}

// cardsIn finds the HTML cards that have an event, and the children of the text. ok is false for what is not a Lexical text, and for
// one with more values than a response may have.
func cardsIn(text string) (cards []textCard, children span, ok bool) {
	all := []byte(text)
	if !json.Valid(all) || checkSize(all, 0) != nil {
		return nil, children, false
	}
	root, ok := find(all, whole(all), "root")
	if !ok || root.isNone() {
		return nil, children, false
	}
	if children, ok = find(all, root, "children"); !ok || children.isNone() || all[children.begin] != '[' {
		return nil, children, false
	}
	nodes := json.NewDecoder(bytes.NewReader(all[children.begin:children.end]))
	if _, err := nodes.Token(); err != nil {
		return nil, children, false
	}
	for nodes.More() {
		var raw json.RawMessage
		if nodes.Decode(&raw) != nil {
			return nil, children, false
		}
		end := children.begin + int(nodes.InputOffset())
		node := span{end - len(raw), end}
		var html string
		value, isObject := find(all, node, "html")
		kind, _ := find(all, node, "type")
		if !isObject || value.isNone() || kind.isNone() || string(all[kind.begin:kind.end]) != `"html"` ||
			json.Unmarshal(all[value.begin:value.end], &html) != nil || !hasCard(html) {
			continue
		}
		cards = append(cards, textCard{html, value, node})
	}
	return cards, children, true
}

// withCard replaces one of the cards in a text, removes it for "", or adds one before the rest if there are no more. What is
// not a Lexical text stays as it is.
func withCard(text string, own int, html string) string {
	cards, children, ok := cardsIn(text)
	var card textCard
	if own < len(cards) {
		card = cards[own]
	}
	if !ok || card.html == html {
		return text
	}
	all := []byte(text)
	switch value, _ := json.Marshal(html); { // of which none fails
	case card.node.isNone():
		return string(insert(all, children, `{"type":"html","version":1,"html":`+string(value)+`}`))
	case html != "":
		return string(replace(all, card.value, string(value)))
	}
	before, after := all[:card.node.begin], all[card.node.end:]
	others := bytes.TrimRight(before, " \t\r\n")
	switch rest := trimSpace(after); {
	case rest[0] == ',':
		after = rest[1:]
	case bytes.HasSuffix(others, []byte(",")):
		before = others[:len(others)-1]
	default:
		return string(replace(all, card.node, emptyParagraph))
	}
	return string(before) + string(after)
}

// cardAt is one of the cards of a post, "" if it has no more.
func cardAt(p platform.EventPost, own int) string {
	if own < len(p.Cards) {
		return p.Cards[own]
	}
	return ""
}

// settle waits until a concurrent change would get another updated_at, and reads the post again. It gives up with a
// collision if the post changes all the time.
func (c *eventClient) settle(ctx context.Context, p eventPost) (eventPost, error) {
	for rounds := 0; !p.isSettled; rounds++ {
		if rounds == maxCollisions {
			return p, &Error{Status: http.StatusConflict, Message: "with another post each second"}
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(timeUnit + timeUnit/10):
		}
		again, err := c.getEventPost(ctx, p.ID)
		if err != nil {
			return p, err
		}
		again.isSettled = again.isSettled || again.UpdatedAt == p.UpdatedAt
		p = again
	}
	return p, nil
}
