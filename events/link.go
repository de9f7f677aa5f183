package events

import (
	"html"
	"net/url"
	"strings"
)

// maxLink bounds the address of a link in the text for readers without JavaScript, in bytes: so that
// text is never too long for a platform.
const maxLink = 2000

// linkOf returns a link to an address, "" if that is of no page. It is without quotes: in
// these, Ghost would write the address of the publication in another way.
func linkOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(u.String()) > maxLink {
		return ""
	}
	return "<a href=" + unquotedText.Replace(u.String()) + ">" + html.EscapeString(u.String()) + "</a>"
}

// unquotedText escapes what an attribute without quotes may not have (HTML, section 13.1.2.3).
var unquotedText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "=", "&#61;", "`", "&#96;", " ", "%20")
