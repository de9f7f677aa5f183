package edge

// NowServing is empty while no configuration serves members.
func NowServing() *Serving {
	if now := runningNow.Load(); now != nil {
		if serving := now.uses.members.Serving(); serving != nil {
			return serving
		}
	}
	return new(Serving)
}
