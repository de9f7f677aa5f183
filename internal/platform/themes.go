package platform

import "context"

// ThemeHost is a Platform to which its staff upload themes over HTTP. They do so
// through the edge, which reads each theme on its way.
type ThemeHost interface {
	Authenticator

	// ChangesTheme reports whether a request, if it succeeds, uploads or deletes a theme.
	// The path is that behind the path of the platform's admin. It is asked of each
	// request below it that is not safe, so it has to be fast for all others.
	ChangesTheme(method, path string) (ThemeChange, bool)

	// ReadUploaded takes the platform's JSON response to an upload that succeeded.
	ReadUploaded(response []byte) (theme string, err error)

	// Installed asks in the name of a member of the staff. Errors: ErrNotStaff, *SessionError.
	Installed(ctx context.Context, visitor Visitor) ([]InstalledTheme, error)

	// AddFindings adds a JSON list of findings to a response that ReadUploaded has read. A notice,
	// unless it is nil, is added where the platform's admin shows people what is wrong with a
	// theme.
	AddFindings(response, findings []byte, notice *UploadNotice) []byte
}

// UploadNotice tells the uploader of a theme what was found in its manifest. All of
// it is text, and may be hostile: it has what the theme's author wrote.
type UploadNotice struct {
	Title    string // Theme manifest: 3 findings
	Meaning  string // what that means for the site
	Findings []NoticedFinding
}

// NoticedFinding is a finding in an UploadNotice.
type NoticedFinding struct {
	Where   string // in the manifest; each has another
	Message string
}

// ThemeChange is what a request does to the themes of a platform.
type ThemeChange struct {
	// Deleted is the name of the theme that is deleted; "" means that one is uploaded.
	Deleted string

	// Field is the field of an upload's form (RFC 7578) that has the theme, as a zip.
	Field string
}

// InstalledTheme is a theme that a platform has.
type InstalledTheme struct {
	Name     string
	IsActive bool
}
