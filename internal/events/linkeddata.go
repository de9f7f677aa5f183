package events

const (
	// maxAddress bounds the address of a page that its head names, in bytes, and maxKnownLater
	// what it adds to the head in three places, with the name and the address of the
	// publication.
	maxAddress    = 500
	maxKnownLater = 4 << 10
)

// object is JSON-LD with schema.org's Event, in the order in which standardFields adds to it.
func (of linkedEvent) object() object {
	linked := object{{"@context", "https://schema.org"}, {"@type", "Event"}}
	for _, f := range standardFields {
		if f.linked != nil {
			f.linked(&linked, of.public[f.Key], of)
		}
	}
	linked.addFilled("url", of.address)
	if p := of.publication; p.Title != "" {
		organizer := object{{"@type", "Organization"}, {"name", p.Title}}
		if len(p.URL) <= maxAddress {
			organizer.addFilled("url", p.URL)
		}
		linked.add("organizer", organizer)
	}
	return linked
}
