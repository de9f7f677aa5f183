package desk

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// themesPage is what the template of the page has.
type themesPage struct {
	Notice   *notice
	Themes   []listedTheme
	Platform string

	// Upload is where a browser sends themes, empty for a visitor who may not. Settings
	// is the page of the platform's admin that takes them too.
	Upload, Settings string
}

// listedTheme is a theme of the platform, with what is kept of its manifest.
type listedTheme struct {
	Name        string
	IsActive    bool
	HasManifest bool
	Status      string
	UpdatedAt   time.Time
	Findings    []manifest.Finding // maxFindings at most
	More        int                // findings beyond these

	IsCurated  bool
	CurationAt time.Time // zero if it is not known

	// RunsOlder means that the last known-good copy is not the latest manifest; Age is
	// that copy's, empty if it is not known.
	RunsOlder bool
	Age       string

	CanRefresh bool
	Activate   string // where a browser sends the request, empty if it may not
}

func showThemes(ctx context.Context, v *view) (any, error) {
	return v.themesPage(ctx, noticeOfRefresh(v.request.URL.Query()))
}

// themesPage makes the page. said may be nil.
func (v *view) themesPage(ctx context.Context, said *notice) (*themesPage, error) {
	installed, err := v.site.Installed(ctx, v.visitor)
	if err != nil {
		return nil, v.unlisted(err)
	}
	service, err := v.site.Themes()
	if err != nil {
		return nil, away(err)
	}
	list, err := service.List(ctx, maxFindings)
	if err != nil {
		return nil, away(err)
	}
	read, err := service.Read(ctx)
	if err != nil {
		return nil, away(err)
	}
	kept := make(map[string]themes.Summary)
	for _, theme := range list {
		kept[theme.Name] = theme
	}
	shown := &themesPage{Notice: said, Platform: v.site.Kind.Title}
	if v.site.Kind.ThemeSettings != "" {
		shown.Settings = v.desk.Path + v.site.Kind.ThemeSettings
	}
	api := ""
	if v.site.Kind.ThemesAPI != "" && v.member.Permissions.UploadThemes {
		api = v.desk.Path + v.site.Kind.ThemesAPI
		shown.Upload = api + "upload/"
	}
	for _, theme := range installed {
		listed := v.listTheme(theme, kept)
		if !read[theme.Name] {
			listed.Status = themes.NotSeen
		}
		_, listed.CanRefresh = service.Repositories[theme.Name]
		if api != "" && !theme.IsActive {
			listed.Activate = api + url.PathEscape(theme.Name) + "/activate/"
		}
		shown.Themes = append(shown.Themes, listed)
	}
	return shown, nil
}

// unlisted is the error for a platform that does not say which themes it has.
func (v *view) unlisted(err error) error {
	if errors.Is(err, platform.ErrNotStaff) {
		return refusal(http.StatusUnauthorized, "Sign in to "+v.site.Kind.Title+"'s admin on this site first.")
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return silent(v.site.Kind.Title+" does not say which themes it has. Try again in a moment.", err)
}

func (v *view) listTheme(installed platform.InstalledTheme, kept map[string]themes.Summary) listedTheme {
	listed := listedTheme{Name: installed.Name, IsActive: installed.IsActive, Status: themes.NoManifest}
	known, ok := kept[installed.Name]
	if !ok {
		return listed
	}
	listed.HasManifest, listed.Status, listed.UpdatedAt = true, known.Status(), known.UpdatedAt
	listed.Findings = shownFindings(known.Findings)
	listed.More = known.Total - len(listed.Findings)
	listed.IsCurated, listed.CurationAt = known.IsCurated, known.CurationAt
	if listed.RunsOlder = known.RunsOlder; listed.RunsOlder && !known.KnownGoodAt.IsZero() {
		listed.Age = humanize.RelTime(known.KnownGoodAt, v.desk.Now(), "old", "in the future")
	}
	return listed
}

// shownFindings clips the first of some findings.
func shownFindings(all []manifest.Finding) []manifest.Finding {
	var shown []manifest.Finding
	for _, finding := range all[:min(len(all), maxFindings)] {
		finding.Field, finding.Message = clip.Text(finding.Field, maxField), clip.Text(finding.Message, maxMessage)
		shown = append(shown, finding)
	}
	return shown
}

// refreshTheme reads the manifest of a theme from its repository.
func refreshTheme(ctx context.Context, v *view) (any, error) {
	service, err := v.site.Themes()
	if err != nil {
		return nil, away(err)
	}
	theme := v.request.PostForm.Get("refresh")
	report, err := service.Refresh(ctx, theme)
	if err == nil {
		outcome := api.OutcomeOf(report)
		if kept, err := service.Find(ctx, theme); outcome == api.Findings && err == nil && kept.Curation() == nil {
			outcome = inactive
		}
		return redirection(url.Values{"refreshed": {theme}, "as": {string(outcome)}}.Encode()), nil
	}
	failure := api.FailureOf(err)
	if failure.IsUnforeseen {
		return nil, away(err)
	}
	v.desk.log(v, "themes", err)
	return v.themesPage(ctx, &notice{
		Text: "could not be refreshed, so nothing has changed: " + clip.Text(failure.Message, maxMessage), Of: clip.Text(theme, maxField), IsProblem: true,
	})
}

// inactive is the outcome of a refresh with findings, if there is no copy without.
const inactive api.Outcome = "inactive"

// refreshed are the outcomes in words.
var refreshed = map[api.Outcome]notice{
	api.Valid:    {Text: "was refreshed. Its manifest is valid, and in use now."},
	api.Findings: {Text: "was refreshed. Its manifest has findings, which are listed below. Homepage Curation goes on with the last copy that had none.", IsProblem: true},
	inactive:     {Text: "was refreshed. Its manifest has findings, which are listed below. Homepage Curation is inactive: it needs a manifest without findings.", IsProblem: true},
	api.Removed:  {Text: "was refreshed. Its repository has no manifest any more, so Homepage Curation and its event types are off.", IsProblem: true},
}

// noticeOfRefresh is nil if the address of the page says nothing of a refresh.
func noticeOfRefresh(query url.Values) *notice {
	said, ok := refreshed[api.Outcome(query.Get("as"))]
	if !ok {
		return nil
	}
	said.Of = clip.Text(query.Get("refreshed"), maxField)
	return &said
}
