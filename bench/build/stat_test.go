package build

import (
	"os"
	"syscall"
)

// blocks is how many blocks of 512 bytes a file takes on the disk.
func blocks(info os.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks }
