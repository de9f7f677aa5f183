// Package htmltext reads what a page says, for tests.
package htmltext

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Of joins the texts of a page with " | ", without those of its title and its styles.
func Of(t testing.TB, page string) string {
	t.Helper()
	tree, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatalf("html.Parse: %v", err)
	}
	var texts []string
	for node := range tree.Descendants() {
		if node.Type == html.TextNode && node.Parent.Data != "style" && node.Parent.Data != "title" && strings.TrimSpace(node.Data) != "" {
			texts = append(texts, strings.TrimSpace(node.Data))
		}
	}
	return strings.Join(texts, " | ")
}
