package db

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestExplainPostgres has the errors of a server come with what to do about them.
func TestExplainPostgres(t *testing.T) {
	for code, want := range map[string]string{
		"28P01": "check user and password", "28000": "check user and password", "3D000": "createdb", "3F000": "CREATE SCHEMA",
		"42501": "make him the owner", "53100": "no space left: free some on the server's disk", "53300": "max_connections",
		"25006": "name the primary server", "57P01": "try again", "57P03": "try again",
	} {
		e := &pgconn.PgError{Severity: "FATAL", Code: code, Message: "as the server says it"}
		err := explainPostgres(fmt.Errorf("read tasks: %w", e))
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "as the server says it") || !errors.Is(err, e) {
			t.Errorf("%s: %v, want ... %s", code, err, want)
		}
	}
	for _, err := range []error{errors.New("any"), &pgconn.PgError{Code: "23505"}} {
		if got := explainPostgres(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestTriedAgain(t *testing.T) {
	for code, want := range map[string]bool{"40001": true, "40P01": true, "23505": false, "57P01": false, "53100": false} {
		if got := postgresDialect.again(fmt.Errorf("x: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
	if sqliteDialect.again(errors.New("x")) || postgresDialect.again(nil) {
		t.Error("any error is tried again")
	}
}
