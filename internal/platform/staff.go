package platform

// StaffMember is a member of the platform's staff.
type StaffMember struct {
	ID          string   // the platform's own
	Name        string   // for people
	Email       string   // "" if the platform names none
	Roles       []string // as the platform calls them, for people
	Permissions Permissions

	// Scheme is which colours they have the platform's own admin in: dark or light, "" if as their
	// system is.
	Scheme string
}

// Permissions are what a member of the staff may do at the edge. Those of one who may
// only write posts are the zero value.
type Permissions struct {
	UploadThemes    bool
	ManageManifests bool // read those of all themes, and refresh them
	Administer      bool // manage integrations, and see which members are pending
}

// Union permits what p or other permits.
func (p Permissions) Union(other Permissions) Permissions {
	return Permissions{
		UploadThemes:    p.UploadThemes || other.UploadThemes,
		ManageManifests: p.ManageManifests || other.ManageManifests,
		Administer:      p.Administer || other.Administer,
	}
}
