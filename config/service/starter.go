package service

import (
	_ "embed"
	"strings"
)

//go:embed starter.toml
var starter string

// Placeholder stands in the secret's file that a starter names, until somebody
// writes the secret into it.
const Placeholder = "write the password here"

// Starter gives a service file to begin with: everything explained, one list in
// dry-run. Load takes it as it is once there is a file imap.password beside it.
// The state folder is as the file shall name it.
func Starter(state string) string { return strings.ReplaceAll(starter, "{{state}}", state) }
