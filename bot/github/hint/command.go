package hint

import (
	"slices"
	"strings"
)

// Command is what a comment asks for.
type Command struct {
	Stop       bool     `json:"stop,omitempty"`
	Benchmarks []string `json:"benchmarks,omitempty"` // nil: the whole suite
}

// word begins a line that is a command.
const word = "/bench"

const (
	maxBenchmarks = 20
	maxName       = 100 // bytes of a benchmark's name
	maxComment    = 64 << 10
)

// Parse finds the first command in a comment's Markdown: a line that
// begins with /bench, outside of code blocks and of what <!-- --> hides: whoever
// writes a command sees it. Quoted lines begin with > and are none. A line whose
// arguments cannot be names of benchmarks is no command.
func Parse(body string) (Command, bool) {
	if len(body) > maxComment {
		body = body[:maxComment]
	}
	fence := ""     // that ends the code block we are in
	hidden := false // we are in a comment of HTML
	for rest := body; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		line = strings.TrimRight(line, "\r")
		if hidden {
			hidden = !strings.Contains(line, "-->")
			continue
		}
		inner := strings.TrimLeft(line, " ")
		if indent := len(line) - len(inner); indent <= 3 {
			mark := inner[:len(inner)-len(strings.TrimLeft(inner, inner[:min(1, len(inner))]))]
			// Three backticks with others behind them are code in a line.
			inline := fence == "" && strings.HasPrefix(mark, "`") && strings.Contains(inner[len(mark):], "`")
			if len(mark) >= 3 && (mark[0] == '`' || mark[0] == '~') && !inline {
				switch {
				case fence == "":
					fence = mark
				case mark[0] == fence[0] && len(mark) >= len(fence) && strings.TrimSpace(inner) == mark:
					fence = ""
				}
				continue
			}
		}
		if fence != "" {
			continue
		}
		if i := strings.LastIndex(line, "<!--"); i >= 0 && !strings.Contains(line[i:], "-->") {
			// At the beginning of a line one hides all that follows, else what ends.
			hidden = strings.HasPrefix(inner, "<!--") || strings.Contains(rest, "-->")
			continue
		}
		text, ok := strings.CutPrefix(line, word)
		if !ok || text != "" && text[0] != ' ' && text[0] != '\t' {
			continue
		}
		args := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
		if len(args) == 1 && args[0] == "stop" {
			return Command{Stop: true}, true
		}
		if len(args) > maxBenchmarks || slices.ContainsFunc(args, func(a string) bool { return !isName(a) }) {
			continue
		}
		if len(args) == 0 {
			args = nil
		}
		return Command{Benchmarks: args}, true
	}
	return Command{}, false
}

// isName says whether s can be a benchmark, or one with values of its
// parameters: printable ASCII without what a shell, a page or Markdown reads as
// its own.
func isName(s string) bool {
	if s == "" || len(s) > maxName || s[0] == '-' {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r > '~' || strings.ContainsRune("`\"'<>&|;$*?!\\()@{}", r) {
			return false
		}
	}
	return true
}

// IsLogin says whether s can be the name of a user, as a part of a path.
func IsLogin(s string) bool {
	s = strings.TrimSuffix(s, "[bot]")
	if s == "" || len(s) > 100 {
		return false
	}
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return true
}
