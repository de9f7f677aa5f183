package edge

// NowServing returns what serves members in the process. It is empty while nothing does.
func NowServing() *Serving {
	if e := running.Load(); e != nil {
		if serving := e.members.Serving(); serving != nil {
			return serving
		}
	}
	return new(Serving)
}
