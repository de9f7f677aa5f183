package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// This file keeps the secrets of a site in the store with the servers that they were written for.

// receiver is where a secret, or a request with that name, is sent to.
type receiver struct {
	field, address string // of the server
	secret         string // "" for none
	path           []string
	orNone         string // what else can be written
}

func (s *Site) receivers() (all []receiver) {
	if p := s.Platform; p != nil {
		all = append(all, receiver{"platform.url", p.URL, p.AdminKey, []string{"platform", "admin_key"}, ""})
		all = append(all, receiver{field: "platform.admin_url", address: p.AdminURL}) // the name by which the server of the URL is asked, and no secret
	}
	if m := s.Mail; m != nil && !m.isOff() {
		all = append(all, receiver{field: mailSecret, address: m.URL}) // which has its secret in it
	}
	for _, name := range slices.Sorted(maps.Keys(s.Themes)) {
		if theme := s.Themes[name]; theme != nil && theme.Repository != nil {
			path := []string{"themes", name, "repository", "token"}
			all = append(all, receiver{"themes." + name + ".repository.url", theme.Repository.URL, theme.Repository.Token, path, ", or null for none"})
		}
	}
	return all
}

// movedReceivers are those of after at a server where they were not before.
func movedReceivers(before, after *Site) []receiver {
	known := make(map[string]string)
	for _, of := range before.receivers() {
		known[of.field] = of.address
	}
	return slices.DeleteFunc(after.receivers(), func(of receiver) bool {
		return of.address == "" || serverOf(of.address) == serverOf(known[of.field])
	})
}

// checkReceivers refuses a change of an address by which another server would be sent a secret that the change does not
// have: who may change a site need not know its secrets.
func checkReceivers(before, after *Site, patch json.RawMessage) error {
	var change any
	if err := json.Unmarshal(patch, &change); err != nil {
		return err
	}
	for _, of := range movedReceivers(before, after) {
		if of.secret == "" || has(change, of.path) {
			continue
		}
		return fmt.Errorf("%s: this is another server than before, and would be sent the %s that is kept: write %s too%s",
			of.field, of.path[len(of.path)-1], strings.Join(of.path, "."), of.orNone)
	}
	return nil
}

// serverOf is the scheme, the host and the port of an address.
func serverOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + portOf(u)
}

// has reports whether JSON has a value at a path.
func has(of any, path []string) bool {
	for _, name := range path {
		object, _ := of.(map[string]any)
		of = object[name]
	}
	return of != nil
}
