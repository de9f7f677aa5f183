package button

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/e2e/mailbox"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

const ghostCaddyfile = `{
	{{global}}
	lychgate {
		store sqlite {{folder}}/lychgate.db
		resolvers {{dns}}
		site daily {
			hosts localhost
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
			}
			integration crm {
				key a-key-for-the-crm-0123456789abcdef
			}
		}
	}
}

http://localhost:{{port}} {
	inbox_provider
	members_api
	theme_manifest
	reverse_proxy {{front}}
}
`

// The whole way of a reader: a CRM has made them a member; on the site's page,
// which Caddy serves from a real Ghost, they ask for a link to sign in; the link
// is mailed, and the button opens their inbox. The tag is the one that the
// command prints.
func TestSignInThroughCaddy(t *testing.T) {
	harness.NeedBrowser(t)
	ghost := ghosttest.New(t)
	portal := asset(t, "portal.min.js")
	port := freeport.New(t) // which Ghost has to know before the edge starts
	site := "http://localhost:" + port
	box, smtpPort := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_URL", site)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtpPort)
	ghost.Start()
	caddytest.New(t, ghostCaddyfile, caddytest.Values{
		"port": port, "dns": resolver, "ghost": ghost.URL, "key": ghost.Key, "front": front(t, ghost.URL, portal),
	})
	const address = "jane@company.example"
	request, err := http.NewRequest(http.MethodPost, site+"/integration/members", strings.NewReader(`{"email":"`+address+`"}`))
	if err != nil {
		t.Fatalf("http.NewRequest: %v", err)
	}
	request.Header.Set("Authorization", "Bearer a-key-for-the-crm-0123456789abcdef")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("http.DefaultClient.Do: %v", err)
	}
	created, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: io.ReadAll = %s, want status 200", response.Status, created)
	}
	read, err := http.NewRequest(http.MethodGet, site+"/integration/members/"+address, nil)
	if err != nil {
		t.Fatalf("http.NewRequest: %v", err)
	}
	read.Header = request.Header
	wait.Until(t, func() string { // on a loaded machine Ghost may get the member a moment later
		response, err := http.DefaultClient.Do(read)
		if err != nil {
			return err.Error()
		}
		response.Body.Close()
		if sync := response.Header.Get("Lychgate-Sync"); response.StatusCode != http.StatusOK || sync != "" {
			return fmt.Sprintf("the member: got %s, Lychgate-Sync %q, want 200, and none", response.Status, sync)
		}
		return ""
	})
	tag, err := exec.Command(caddytest.Build(t), "lychgate", "inbox-button", "--sender", "noreply@daily.example").Output()
	if err != nil {
		t.Fatalf("exec.Command(caddytest.Build(t), \"lychgate\", …: %v", err)
	}
	inject(t, site, string(tag))

	p := open(t, site+"/", phoneOrDesktop(1280, 800, false))
	p.Until("listening.size > 0 && [...document.querySelectorAll('form[data-members-form]')].every(form => listening.has(form))")
	p.Keys("form[data-members-form] [data-members-email]", address+"\r")
	p.Until("!!document.querySelector('form.success')")
	diff(t, "link", "https://outlook.office.com/mail/?login_hint=jane%40company.example", p.shown().Href)
	p.Picture("sign-in")
	if text := box.Wait(t, address); !strings.Contains(text, site+"/members/?token=") { // Ghost greets its owner too
		t.Errorf("the mail: %s", text)
	}
}
