// Package pathspec chooses files by patterns, in the way of git's pathspecs: a
// pattern without wildcards is a file, or a folder with all in it.
//
//	src          the file src, or all below the folder
//	*.c          all C files: a star goes over slashes too
//	**/x.c       x.c in any folder
//	!src/old     none of these, whatever other patterns say
//
// In go patterns and a file's name, out comes whether it is chosen. Patterns that
// only take names out choose all others.
package pathspec

import (
	"path"
	"strings"
)

// Match says that a name is one of those that some patterns choose.
func Match(patterns []string, name string) bool {
	hit, onlyOut := false, true
	for _, p := range patterns {
		out := strings.HasPrefix(p, "!")
		p = strings.TrimPrefix(p, "!")
		onlyOut = onlyOut && out
		if matches(p, name) {
			if out {
				return false
			}
			hit = true
		}
	}
	return hit || onlyOut
}

func matches(pattern, name string) bool {
	pattern = strings.TrimSuffix(path.Clean("/" + pattern)[1:], "/")
	if pattern == "" || pattern == name || strings.HasPrefix(name, pattern+"/") {
		return true
	}
	if rest, ok := strings.CutPrefix(pattern, "**/"); ok && matches(rest, name) {
		return true
	}
	return wild(pattern, name)
}

// wild matches * (any text), ? (a character) and [a-z], as fnmatch without flags
// does. It goes back to the last star alone, so that no pattern takes long.
func wild(pattern, name string) bool {
	p, n, star, from := 0, 0, -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, n
			p++
			continue
		}
		if p < len(pattern) {
			if next, ok := one(pattern, p, name[n]); ok {
				p, n = next, n+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		p, n = star+1, from
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// one matches one byte against the pattern at p, and gives where that goes on.
func one(pattern string, p int, c byte) (next int, ok bool) {
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '\\':
		if p+1 < len(pattern) {
			return p + 2, pattern[p+1] == c
		}
	case '[':
		end := strings.IndexByte(pattern[p+1:], ']')
		if end < 1 {
			break
		}
		set := pattern[p+1 : p+1+end]
		not := set[0] == '!' || set[0] == '^'
		if not {
			set = set[1:]
		}
		in := false
		for i := 0; i < len(set); i++ {
			if i+2 < len(set) && set[i+1] == '-' {
				in = in || set[i] <= c && c <= set[i+2]
				i += 2
			} else {
				in = in || set[i] == c
			}
		}
		return p + end + 2, in != not
	}
	return p + 1, pattern[p] == c
}
