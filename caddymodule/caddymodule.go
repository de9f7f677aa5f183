// Package caddymodule is Lychgate for Caddy: the directives, the global option "lychgate", and two modules that others
// take. It and the packages below it, which are the admin API and the command line, are the only ones that know Caddy.
//
// A directive is a file of its own, on what directive.go has for all. blocks.go parses Caddyfiles, and
// lines.go keeps the lines for error messages. routing.go says what a directive is there for;
// arrivals.go and warnings.go tell when no request of the kind would reach it.
package caddymodule
