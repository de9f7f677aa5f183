package command

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Prints the versions of Lychgate, Caddy and Go", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = moduleVersion(info)
			}
			simple, _ := caddy.Version()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Lychgate %s\nCaddy    %s\nGo       %s\n", version, simple, runtime.Version())
			return err
		},
	}
}

const modulePath = "github.com/lychgate/caddy-lychgate"

func moduleVersion(info *debug.BuildInfo) string {
	if info.Main.Path == modulePath {
		return cmp.Or(info.Main.Version, "(devel)") + revision(info)
	}
	for _, module := range info.Deps {
		switch {
		case module.Path != modulePath:
		case module.Replace != nil: // a fork, or a folder, which has no version
			return cmp.Or(module.Replace.Version, "(devel)") + " from " + module.Replace.Path
		default:
			return module.Version
		}
	}
	return "unknown"
}

// revision is the commit that a program without a version was built from.
func revision(info *debug.BuildInfo) (text string) {
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return "" // it names the commit
	}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			text = " " + setting.Value + text
		case setting.Key == "vcs.modified" && setting.Value == "true":
			text += ", modified"
		}
	}
	return text
}
