package letter

import (
	"fmt"
	"slices"
	"strings"

	"patchbench/bot/report"
	"patchbench/bot/report/delta"
	"patchbench/store"
)

const (
	mostLines = 200
	width     = 72 // of what is written here
)

// body is the text of a letter: that of the report, with what became of the version
// before, and a signature.
func body(e, before *store.Evaluation, url string) string {
	var since []string
	if before != nil {
		since = append(delta.Lines(before, e, width), "")
	}
	end := slices.Clone(signature)
	if !printableURL(url) {
		url = ""
	} else {
		end = append(end, "All figures: "+url)
	}
	room := mostLines - len(end)
	var lines []string
	for i, section := range report.Sections(e, report.Options{Lines: room - len(since)}) {
		if i > 0 && section.Kind != report.Notes {
			lines = append(lines, "")
		}
		if section.Kind > report.About && since != nil {
			lines, since = append(lines, since...), nil
		}
		lines = append(lines, section.Lines...)
	}
	if since != nil {
		lines = append(append(lines, ""), since[:len(since)-1]...)
	}
	if len(lines) > room {
		rest := "see the page below"
		if url == "" {
			rest = "left out"
		}
		lines = append(lines[:room-2], "", fmt.Sprintf("%d lines more: %s", len(lines)-(room-2), rest))
	}
	return text(append(lines, end...))
}

// signature ends each letter.
var signature = []string{"", "-- ", "Sent by Patchbench, a robot that measures patches. It leaves yours",
	"alone after git format-patch --add-header='X-Patchbench: no'."}

// text makes lines a body.
func text(lines []string) string {
	for i, line := range lines {
		// Mailboxes write > before such a line, and so change the text.
		if strings.HasPrefix(line, "From ") {
			lines[i] = " " + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// printableURL says that a link can stand in a line as it is.
func printableURL(s string) bool {
	return s != "" && len(s) < 500 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
