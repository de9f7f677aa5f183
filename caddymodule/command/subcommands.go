package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group adds commands to one that does nothing itself. A name that none of them
// has is an error, so that a typo does not let a script go on.
func group(cmd *cobra.Command, commands ...*cobra.Command) {
	cmd.AddCommand(commands...)
	cmd.SuggestionsMinimumDistance = 2 // letters
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		cmd.SilenceUsage = true
		names := cmd.SuggestionsFor(args[0])
		if len(names) == 0 {
			for _, command := range cmd.Commands() {
				names = append(names, command.Name())
			}
		}
		return fmt.Errorf("there is no command %s %s: write %s %s", cmd.CommandPath(), args[0], cmd.CommandPath(), strings.Join(names, ", or "))
	}
}

// onOffOf reads a word for yes or no as on or off. Any other text is empty.
func onOffOf(text string) string {
	switch text {
	case "on", "yes", "true":
		return "on"
	case "off", "no", "false":
		return "off"
	}
	return ""
}

// one wants one argument, which its name says.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		cmd.SilenceUsage = true
		if len(args) > 1 && onOffOf(args[1]) != "" {
			return fmt.Errorf("write %[1]q with the flag and \"=\", as in: --registration=%[1]s", onOffOf(args[1]))
		}
		return fmt.Errorf("name %s: caddy lychgate %s", what, strings.TrimPrefix(cmd.UseLine(), "caddy lychgate "))
	}
}
