package members

// Contacts is told what became of a request to the platform of a site: nil for a response. It
// returns at once. It may be nil.
type Contacts func(site string, err error)

// Note tells of a request.
func (c Contacts) Note(site string, err error) {
	if c != nil {
		c(site, err)
	}
}
