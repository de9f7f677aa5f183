package edge

// NowServing returns what serves members in the process. It is empty while nothing does.
func NowServing() *Serving {
	if now := runningNow.Load(); now != nil {
		if serving := now.uses.members.Serving(); serving != nil {
			return serving
		}
	}
	return new(Serving)
}
