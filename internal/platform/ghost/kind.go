package ghost

import (
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Kind is Ghost in the configuration of a site.
var Kind = platform.Kind{
	Name:      "ghost",
	Title:     "Ghost",
	AdminPath: AdminPath,

	ThemesAPI:     "/api/admin/themes/",
	ThemeSettings: "/#/settings/design/change-theme",
	Pictures:      "/content/images/",
	SmallPictures: "/content/images/size/w600/", // with any theme; Ghost responds with the original where it cannot
	ImagesAPI:     "/api/admin/images/upload/",

	URL:      platform.Setting{Example: "http://127.0.0.1:2368", Check: checkURL},
	AdminURL: platform.Setting{Example: "https://admin.example.com", Check: checkAdminURL},
	Key: platform.Setting{
		Source:  "the key of a custom integration in Ghost's settings",
		Example: "{env.GHOST_ADMIN_KEY}",
		Check:   checkAdminKey,
	},
	AdminScript: &platform.AdminScript{Path: "/api/admin/config/", Add: addScript},

	RefusedTarget: refusedTarget,

	Client:     (*Client)(nil),
	CheckTheme: checkTheme,
	Connect: func(s platform.Settings) (platform.Platform, error) {
		client, err := New(Config{URL: s.URL, AdminURL: s.AdminURL, AdminKey: s.Key})
		if err != nil {
			return nil, err
		}
		return client, nil
	},
}
