package command

import (
	"debug/buildinfo"
	"fmt"
	"os/exec"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// Somebody who reports a problem can say with what.
func TestModuleVersion(t *testing.T) {
	main := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: version}, Settings: settings}
	}
	dependency := func(module debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main:     debug.Module{Path: "caddy", Version: "(devel)"},
			Deps:     []*debug.Module{{Path: "example.com/other", Version: "v9.9.9"}, &module},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "another repository's"}},
		}
	}
	revision, modified := debug.BuildSetting{Key: "vcs.revision", Value: "4f2a"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, test := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"by xcaddy", dependency(debug.Module{Path: modulePath, Version: "v1.2.3"}), "v1.2.3"},
		{"by xcaddy, of a folder", dependency(debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "/src/lychgate"}}), "(devel) from /src/lychgate"},
		{"by xcaddy, of a fork", dependency(debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}), "v1.2.4 from example.com/fork"},
		{"of a tag", main("v1.2.3", revision), "v1.2.3"},
		{"of a commit", main("(devel)", revision), "(devel) 4f2a"},
		{"of a commit with changes", main("(devel)", revision, modified), "(devel) 4f2a, modified"},
		{"of a commit without changes", main("(devel)", revision, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), "(devel) 4f2a"},
		{"without git", main(""), "(devel)"},
		{"without Lychgate", &debug.BuildInfo{}, "unknown"},
	} {
		if got := moduleVersion(test.info); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestVersionCommand(t *testing.T) {
	t.Parallel()
	binary := caddytest.Build(t)
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatalf("buildinfo.ReadFile: %v", err)
	}
	caddy := ""
	for _, module := range info.Deps {
		if module.Path == "github.com/caddyserver/caddy/v2" {
			caddy = module.Version
		}
	}
	want := fmt.Sprintf("Lychgate %s\nCaddy    %s\nGo       %s\n", moduleVersion(info), caddy, info.GoVersion)
	got, err := exec.Command(binary, "lychgate", "version").CombinedOutput()
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("output: error %v, want none (-want +got):\n%s", err, diff)
	}
}
