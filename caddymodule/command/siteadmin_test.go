package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An operator who looks at a site is told where its Ghost says that the admin is, and can write that.
func TestSiteShowSaysWhereTheAdminIs(t *testing.T) {
	const admin = "admin.weekly.example"
	ghost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != admin && strings.HasPrefix(r.URL.Path, "/ghost/"):
			http.Redirect(w, r, "https://"+admin+r.URL.Path, http.StatusMovedPermanently)
		case r.Host == admin && r.URL.Path == "/ghost/api/admin/site/":
			_, _ = io.WriteString(w, `{"site":{"url":"https://weekly.example/"}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer ghost.Close()
	folder := t.TempDir()
	writeStoredConfig(t, folder, "secret "+firstSecret)
	shown := func(adminURL, hint string) ran {
		if adminURL != "" {
			adminURL = "Admin:     " + adminURL + "\n"
		}
		return ran{"Name:      weekly\nHosts:     weekly.example\nPlatform:  ghost " + ghost.URL + "\n" + adminURL + "Added:     TIME\nChanged:   TIME\n" + hint, "", 0}
	}
	const said = "Site weekly is changed, everywhere within two seconds.\n"
	follow(t, folder, []command{
		{"site add weekly --hosts weekly.example --platform ghost --url " + ghost.URL + " --admin-key -", ghostKey, ran{"Site weekly is added, and live at weekly.example within two seconds.\n", "", 0}},
		{"site show weekly", "", shown("", "\nGhost answers, but its admin is at another host, as it says when it is asked: caddy lychgate site update weekly --admin-url 'https://"+admin+"'\n")},
		{"site update weekly --admin-url https://admin.weekly.example/ghost", "", ran{"", "Error: site weekly: --admin-url: \"https://admin.weekly.example/ghost\" is the address of Ghost's admin: write it without /ghost\n", 1}},
		{"site update weekly --admin-url https://old.weekly.example", "", ran{said, "", 0}},
		{"site show weekly", "", shown("https://old.weekly.example", "\nGhost answers, but its admin is not at https://old.weekly.example: caddy lychgate site update weekly --admin-url 'https://"+admin+"'\n")},
		{"site update weekly --admin-url https://" + admin, "", ran{said, "", 0}},
		{"site show weekly", "", shown("https://"+admin, "")},
	})
}
