package caddymodule

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// option is an option of a block.
type option struct {
	Example string // how it is written, for error messages
	Args    int    // how many arguments it takes, or Many
	Repeats bool   // whether it may be given several times
	Field   string // its name in JSON, if that is another

	// One of these takes the arguments. Set is for a value; its error is given the block's
	// name and the line. Block parses a block of its own, whose errors have theirs.
	Set   func(args []string) error
	Block func(args []string, inner block) error
}

// manyArgs is for an option that takes one argument or more.
const manyArgs = -1

// block is a block that is parsed. The lines of its options are kept by their paths in
// JSON.
type block struct {
	Name string // in error messages
	Path string // its own
	config.Lines
}

// Below describes the block of a name inside of this one.
func (b block) Below(name, path string) block {
	return block{name, strings.TrimPrefix(b.Path+"."+path, "."), b.Lines}
}

// Mistake gives an error the block's name, and the line of the dispenser.
func (b block) Mistake(d *caddyfile.Dispenser, err error) error {
	return d.WrapErr(config.In(b.Name, "", err))
}

// blockOf names the block of options that are easily written elsewhere.
var blockOf = map[string]string{
	"admin_token": "lychgate", "labels": "admin_token", "allow_private_upstreams": "admin_token", "store": "lychgate", "redis": "lychgate", "secret": "lychgate", "resolvers": "lychgate", "service": "lychgate", "fallback_manifest": "lychgate", "site": "lychgate",
	"hosts": "site", "platform": "site", "integration": "site", "theme": "site", "staff_integrations": "site", "registration": "site", "from": "mail",
	"repository": "theme", "branch": "repository", "token": "repository", "user": "repository",
	"admin_url": "platform", "admin_key": "platform", "webhooks": "platform", "reconcile": "platform", "key": "integration", "mode": "integration",
}

// blockWith finds the block in which an option belongs, "" if that is not known.
func blockWith(option string) string {
	if blockOf[option] == "platform" {
		return config.PlatformWith(option)
	}
	return blockOf[option]
}

// parseBlock parses the block that follows, if one does. Space around arguments is left out.
func parseBlock(d *caddyfile.Dispenser, in block, known map[string]option) error {
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		key := d.Val()
		o, ok := known[key]
		switch {
		case key == "{":
			return d.Errf("%s: unexpected {: the option before it has no block", in.Name)
		case !ok && blockWith(key) != "" && !strings.HasPrefix(in.Name, blockWith(key)):
			return d.Errf("%s has no option %q: it belongs into the block of %s", in.Name, key, blockWith(key))
		case !ok && len(known) == 0:
			return d.Errf("%s has no options: take %q out", in.Name, key)
		case !ok:
			return d.Errf("%s has no option %q: known are %s", in.Name, key,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case seen[key] && !o.Repeats:
			return d.Errf("%s: %s is given twice: write it once", in.Name, key)
		}
		seen[key] = true

		args := d.RemainingArgs()
		for i, arg := range args {
			args[i] = strings.TrimSpace(arg)
		}
		if o.Args == manyArgs && len(args) == 0 || o.Args != manyArgs && len(args) != o.Args {
			return d.Errf("%s: %s has the wrong number of arguments: write it as in: %s", in.Name, key, o.Example)
		}
		if err := o.take(d, in, cmp.Or(o.Field, key), args); err != nil {
			return err
		}
	}
	return nil
}

func (o option) take(d *caddyfile.Dispenser, in block, field string, args []string) error {
	inner := in.Below(in.Name, field)
	if o.Block != nil {
		if o.Repeats {
			inner = in.Below(in.Name, field+"."+args[0])
		}
		in.Lines[inner.Path] = lineAt(d)
		return o.Block(args, inner)
	}
	in.Lines[inner.Path] = lineAt(d)
	if err := o.Set(args); err != nil {
		return in.Mistake(d, err)
	}
	return nil
}

// lineAt reads file and line from the dispenser's own errors, which alone have both.
func lineAt(d *caddyfile.Dispenser) string {
	return strings.TrimPrefix(d.WrapErr(errors.New("")).Error(), ", at ")
}

// textOption is an option of one text, which must not be empty.
func textOption(name, example string, value *string) option {
	return option{Example: name + " " + example, Args: 1, Set: func(args []string) error {
		if *value = args[0]; *value == "" {
			return &config.Mistake{Text: name + " is empty: write it as in: " + name + " " + example + ", or leave it out"}
		}
		return nil
	}}
}

// textsOption is an option of one text or more.
func textsOption(example string, values *[]string) option {
	return option{Example: example, Args: manyArgs, Set: func(args []string) error {
		*values = args
		return nil
	}}
}

// switchOption is an option that is on or off.
func switchOption(name, example string, set func(on bool)) option {
	return option{Example: name + " " + example, Args: 1, Set: func(args []string) error {
		if args[0] != "on" && args[0] != "off" {
			return &config.Mistake{Option: name, Text: strconv.Quote(args[0]) + ": write on or off"}
		}
		set(args[0] == "on")
		return nil
	}}
}

// limitOption is an option that is a rate limit.
func limitOption(example string, limit **config.Limit) option {
	return option{Example: "limit " + example, Args: 2, Set: func(args []string) (err error) {
		*limit, err = config.ParseLimit(args)
		return err
	}}
}
