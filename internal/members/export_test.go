package members

import "context"

// Change changes a record as Update does.
func (s *Service) Change(ctx context.Context, i Integration, identifier string, change func(*Record)) error {
	_, err := s.write(ctx, i, identifier, nil, change)
	return err
}
