package work

// Table is that of this package.
func (q *Queue) Table() Table { return q.store }
