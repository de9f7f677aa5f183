package work

import "context"

// Asker is who asks for work.
type Asker struct {
	Name string // for people, "" for nobody of the staff

	// IsUnanswered means that the platform has just not answered a question about the asker. What
	// they ask for is enqueued, and nobody waits for an attempt.
	IsUnanswered bool
}

type askerKey struct{}

// WithAsker marks work that is enqueued in the context as asked for by a.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerOf is the zero value for a context without an asker.
func AskerOf(ctx context.Context) Asker {
	a, _ := ctx.Value(askerKey{}).(Asker)
	return a
}
