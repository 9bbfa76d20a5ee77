// Package late makes regular expressions when they are first needed. This program
// starts itself anew for each round of each benchmark, and whatever its packages
// do at their start is done then: eighty expressions took 13 ms.
//
//	var clock = late.Regexp(`^(\d+):(\d\d)$`)
//	clock().MatchString("5:42")
package late

import (
	"regexp"
	"sync"
)

// Regexp gives the compiled expression, which it compiles at the first call; one
// that does not compile panics then. It may be called by several goroutines.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
