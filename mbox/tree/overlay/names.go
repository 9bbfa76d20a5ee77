package overlay

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// BadPath says why a path must not be used in a tree, "" if it may. It refuses
// what git's verify_path refuses with core.protectHFS and core.protectNTFS, and
// control characters, backslashes and drive letters beside.
func BadPath(path string) string {
	quoted := fmt.Sprintf("path %q", path)
	switch {
	case strings.HasPrefix(path, "/"):
		return quoted + " is absolute"
	case strings.Contains(path, `\`):
		return quoted + " holds a backslash"
	case len(path) >= 2 && path[1] == ':' && unicode.IsLetter(rune(path[0])):
		return quoted + " starts with a drive letter"
	case strings.IndexFunc(path, unicode.IsControl) >= 0:
		return quoted + " holds a control character"
	case len(path) > 4096:
		return "path is longer than 4096 bytes"
	}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "":
			return quoted + " has an empty component"
		case part == "..":
			return quoted + " leaves the repository"
		case part == ".":
			return quoted + ` has a component "."`
		case len(part) > 255:
			return "path component is longer than 255 bytes"
		case IsDotGit(part):
			return fmt.Sprintf("path component %q is reserved", part)
		}
	}
	return ""
}

// IsDotGit knows .git in every spelling that some file system takes for it:
// other case, HFS+ code points that are ignored, NTFS short names, blanks and
// dots at the end, and streams (":").
func IsDotGit(part string) bool {
	s := strings.Map(func(c rune) rune {
		switch {
		case c >= 0x200c && c <= 0x200f, c >= 0x202a && c <= 0x202e, c >= 0x206a && c <= 0x206f, c == 0xfeff:
			return -1
		case c == utf8.RuneError:
			return c
		}
		return unicode.ToLower(c)
	}, part)
	s, _, _ = strings.Cut(s, ":")
	s = strings.TrimRight(s, ". ")
	return s == ".git" || s == "git~1"
}
