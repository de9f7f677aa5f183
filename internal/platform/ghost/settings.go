package ghost

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// AdminPath is the path of Ghost's admin, below that of the publication.
const AdminPath = "/ghost"

func checkURL(address string) error {
	return checkAddress(address, "Ghost's address", "http://127.0.0.1:2368")
}

func checkAdminURL(address string) error {
	return checkAddress(address, "the address of Ghost's admin", "https://admin.example.com")
}

// checkAddress names in its errors what the address is to be, and an example.
func checkAddress(address, what, example string) error {
	u, err := url.Parse(address)
	switch {
	case err == nil && u.User != nil:
		return errors.New("credentials in " + what + " end up in logs, and are not sent: write it without what is in front of the @")
	case err != nil && strings.Contains(address, "@"): // not shown, as it may have a password
		return errors.New("not " + what + ", such as " + example)
	case err != nil || !platform.IsServer(u):
		return fmt.Errorf("%q is not %s, such as %s", address, what, example)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is not %s alone: write it without what begins at the ? or #", address, what)
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), AdminPath):
		return fmt.Errorf("%q is the address of Ghost's admin: write it without /ghost", address)
	}
	return nil
}

var (
	adminKey   = regexp.MustCompile(`^[^:\s]+:(?:[0-9a-fA-F]{2}){32,}$`)
	contentKey = regexp.MustCompile(`^[0-9a-f]{26}$`)
)

// checkAdminKey checks an Admin API key. The key is in no error.
func checkAdminKey(key string) error {
	switch {
	case adminKey.MatchString(key):
		return nil
	case contentKey.MatchString(key):
		return errors.New("this is a Content API key: write the Admin API key that Ghost shows beside it")
	}
	return errors.New("not one of Ghost's Admin API keys, an ID and 64 hexadecimal digits with a colon between them: Ghost shows it with a custom integration, under Settings → Integrations")
}
