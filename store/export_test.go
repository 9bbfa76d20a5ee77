package store

import "patchbench/store/db"

// DB gives tests the database beneath a store.
func (s *Store) DB() *db.DB { return s.db }
