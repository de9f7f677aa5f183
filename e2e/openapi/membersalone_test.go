package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Otherwise the two documents say different things of the members API.
func TestMembersAlone(t *testing.T) {
	whole, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	want, err := membersAlone(whole)
	if err != nil {
		t.Fatalf("membersAlone: %v", err)
	}
	got, err := os.ReadFile("../../docs/members_openapi.yaml")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/members_openapi.yaml is not made of docs/openapi.yaml as it is now: run go -C e2e run ./openapi members ../docs/openapi.yaml >docs/members_openapi.yaml. %s", diff)
	}
}
