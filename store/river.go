package store

import (
	"database/sql"

	"github.com/riverqueue/river"
)

// River gives a client of the queue, for bot/work alone.
func (s *Store) River(cfg *river.Config) (*river.Client[*sql.Tx], error) { return nil, errNotYet }
