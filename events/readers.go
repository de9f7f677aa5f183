package events

import "context"

// This file lets others read the store on behalf of readers, within the bounds of a Feed.

// Read reads the store on behalf of readers, few of whom are served at once. One who leaves does
// not cancel it. Errors: ErrBusy, those of query.
func (f *Feed) Read(ctx context.Context, query func(context.Context) error) error {
	return f.read(ctx, query)
}

// Settings are those of a site's events, a second old at most. Errors: ErrBusy, those of the store.
func (f *Feed) Settings(ctx context.Context, site string) (Settings, error) {
	known, err := f.site(ctx, site, false)
	return known.settings, err
}
