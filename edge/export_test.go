package edge

import "errors"

// NowServing is empty while no configuration serves members.
func NowServing() *Serving {
	if now := runningNow.Load(); now != nil {
		if serving := now.uses.members.Serving(); serving != nil {
			return serving
		}
	}
	return new(Serving)
}

// Unpolled counts the sites whose first poll is to come, of those in the store.
func Unpolled(e *Edge) int {
	members := e.Members()
	for _, site := range *members.sites.served.inStore.Load() {
		members.completeCurrent(site) // if that is still to be done
	}
	return members.Serving().inbound.Unpolled()
}

// NoteFailure notes that the platform of a site failed.
func NoteFailure(e *Edge, site string) {
	e.Members().noting(nil)(site, errors.New("away"))
}
