package runner

import (
	"golang.org/x/sys/unix"
)

// full names a folder of the box's own in which nothing more can be written;
// "" if there is room in all. A program that fails then most likely failed of it.
func (h *host) full() string {
	if !h.Boxed {
		return ""
	}
	const scrap = 16 << 10 // what a failed write may leave over
	for _, dir := range h.Empty {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || st.Blocks == 0 {
			continue // not bounded, like message queues
		}
		switch {
		case int64(st.Bavail)*st.Bsize < scrap:
			return "disk full: no more than " + Size(int64(st.Blocks)*st.Bsize) + " in " + dir
		case st.Files > 0 && st.Ffree == 0:
			return "disk full: too many files in " + dir
		}
	}
	return ""
}
