package events

import (
	"html"
	"net/url"
	"strings"
)

// maxLink bounds the address of a link in the text for readers without JavaScript, in bytes: so that
// text is never too long for a platform.
const maxLink = 2000

// linkOf is "" if the address is not that of a page. The HTML has no quotes around the address: in
// quotes, Ghost would rewrite the address of the publication.
func linkOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(u.String()) > maxLink {
		return ""
	}
	return "<a href=" + unquotedText.Replace(u.String()) + ">" + html.EscapeString(u.String()) + "</a>"
}

// unquotedText escapes what an attribute without quotes may not have (HTML, section 13.1.2.3).
var unquotedText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "=", "&#61;", "`", "&#96;", " ", "%20")
