// Command gen writes the classifier's built-in list into the inbox button's
// script. go generate runs it in the folder internal/web.
package main

import (
	"log"
	"os"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/internal/web/internal/list"
)

const script = "inbox-button.js"

func main() {
	log.SetFlags(0)
	before, err := os.ReadFile(script)
	if err != nil {
		log.Fatal(err)
	}
	after, err := list.Write(before, classifier.BuiltIn())
	if err != nil {
		log.Fatalf("%s: %v", script, err)
	}
	if err := os.WriteFile(script, after, 0o644); err != nil {
		log.Fatal(err)
	}
}
