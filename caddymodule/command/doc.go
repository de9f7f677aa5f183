// Package command is the command line: caddy lychgate and all below it, and what
// it prints.
package command
