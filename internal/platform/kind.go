package platform

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
)

// Kind is a kind of platform: what the configuration of a site has to say of one, and
// how it is connected. Each package below this one has one.
type Kind struct {
	// Name stands in the configuration: ghost.
	Name string

	// Title is for people: Ghost.
	Title string

	// AdminPath is the path of the platform's admin, below that of the publication. Only
	// a ThemeHost needs one.
	AdminPath string

	// ThemesAPI and ThemeSettings are behind the path of the admin: where browsers upload
	// and activate themes as Ghost's admin does, and the page of the admin for that. Empty
	// if there is none.
	ThemesAPI, ThemeSettings string

	// Pictures is where, below the path of the publication, the pictures of its posts are.
	// Empty if browsers are to show none.
	Pictures string

	// SmallPictures is where, below the path of the publication, those are about 600 pixels
	// wide. Empty if they are in one size alone.
	SmallPictures string

	// ImagesAPI is where, behind the path of the admin, browsers upload pictures as Ghost's
	// admin does. Empty if there is none.
	ImagesAPI string

	// URL is where the platform responds, and Key opens its API. AdminURL is where staff see its
	// admin, if that is at another host than the publication; it may be left empty.
	URL, Key, AdminURL Setting

	// RefusedTarget says why some versions of the platform send no webhook events to an address, and what to write
	// instead; "" for an address that all take. Nil if there are none.
	RefusedTarget func(address string) (why, write string)

	// Client only tells which interfaces of this package the platforms have that Connect
	// returns. It may be a nil pointer.
	Client Platform

	// CheckTheme is nil for a valid name of a theme. Its error says what is wrong, and what to
	// write instead. Only a ThemeHost needs it.
	CheckTheme func(name string) error

	// AdminScript adds a script to the platform's own admin. Nil if there is no way to.
	AdminScript *AdminScript

	// Connect makes a platform for settings that Check has accepted. It sends no request. A
	// platform that is an [io.Closer] is closed in the end. Connect is nil if there is nothing to
	// connect to.
	Connect func(Settings) (Platform, error)
}

// Settings are the values of a Kind's settings. AdminURL may be empty.
type Settings struct{ URL, AdminURL, Key string }

// AdminScript is how a platform's own admin is given a script: it asks the platform for
// its settings, among them which script to load.
type AdminScript struct {
	// Path is where, behind the path of the admin, it asks.
	Path string

	// Add puts the address of a script, which has no fragment, into the platform's response. If the
	// operator has set a script before, that address is kept in the fragment, percent-encoded after
	// then=, and the new script loads it. ok is false if the response is not as expected.
	Add func(response []byte, script string) (changed []byte, ok bool)
}

// SendsEvents reports whether the platforms are each an [EventSource].
func (k Kind) SendsEvents() bool {
	_, ok := k.Client.(EventSource)
	return ok
}

// HasThemes reports whether the platforms are each a [ThemeHost].
func (k Kind) HasThemes() bool {
	_, ok := k.Client.(ThemeHost)
	return ok
}

// Setting is a value that a kind of platform is configured with. The zero value is for
// a kind that has no such setting.
type Setting struct {
	// Source says where people find the value: a custom integration in Ghost's settings.
	Source string

	// Example is shown to people: http://127.0.0.1:2368, or {env.GHOST_ADMIN_KEY}.
	Example string

	// Check is nil for a valid value. Its error says what is wrong, and what to write instead. The
	// error must not contain the value of a key.
	Check func(value string) error
}

// IsZero reports whether there is no such setting.
func (s Setting) IsZero() bool { return s.Check == nil }

// IsServer reports whether a URL is one at which an HTTP server may respond, whose host DNS may have.
func IsServer(u *url.URL) bool {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	_, wrongName := hostname.ToASCII(u.Hostname())
	return u.Hostname() != "" && !errors.Is(wrongName, hostname.ErrTooLong) && (u.Scheme == "http" || u.Scheme == "https") &&
		(u.Port() == "" && !strings.HasSuffix(u.Host, ":") || err == nil && port != 0)
}
