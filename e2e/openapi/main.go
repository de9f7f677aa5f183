// Command openapi compares what the tests of caddymodule and of handlers sent to an edge,
// or to its handlers, and what was answered, with docs/openapi.yaml; and the same of Caddy's admin API
// with docs/admin_openapi.yaml.
//
//	go run ./openapi edge ../docs/openapi.yaml <exchanges>
//	go run ./openapi admin ../docs/admin_openapi.yaml <exchanges>
//
// It also writes the part of docs/openapi.yaml that is about the members API, for
// docs/members_openapi.yaml:
//
//	go run ./openapi members ../docs/openapi.yaml
//
// The exchanges are those that the tests write to the file that
// LYCHGATE_TEST_EXCHANGES names. Whatever the document does not allow, and
// whatever it says that no test has seen, is printed, and ends it with status 1.
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "members" {
		if err := writeMembers(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 4 || !slices.Contains([]string{edgeServer, adminServer}, os.Args[1]) {
		fmt.Fprintln(os.Stderr, "usage: openapi edge|admin <document> <exchanges>, or openapi members <document>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeMembers(document string) error {
	whole, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	part, err := membersAlone(whole)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	_, err = os.Stdout.Write(part)
	return err
}

func run(server, document, exchanges string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	c, err := newComparison(server, text)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	lines, err := os.ReadFile(exchanges)
	if err != nil {
		return err
	}
	if err := c.readAll(bytes.NewReader(lines)); err != nil {
		return fmt.Errorf("%s: %w", exchanges, err)
	}
	if findings := c.report(os.Stdout); findings > 0 {
		return fmt.Errorf("%d findings", findings)
	}
	return nil
}
