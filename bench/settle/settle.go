// Package settle brings the programs in a folder into one state of memory, so that
// how they came to be there is in no figure.
//
// What a program maps of its file counts as resident by how the kernel holds the
// file: around a page that is touched it maps what it has of the neighbours, and
// more of them where the file was written in large pieces, as cp does, than where
// a linker wrote it page by page. One build of git and a copy of it differed by a
// tenth of their resident memory (3.6 and 4.0 MiB; Linux 6.18, ext4). So files are
// written to the disk, dropped from memory, and read back from their beginning to
// their end.
package settle

import (
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Programs settles the executables and shared objects below a folder. The files may
// be a stranger's: nothing outside of the folder is touched, whatever links there
// are. What cannot be read is left as it is, and so is everything on a file system
// that lies in memory.
func Programs(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var names []string
	done := map[uint64]bool{} // by inode
	err = fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&0o111 == 0 && !strings.Contains(d.Name(), ".so") {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			if done[st.Ino] {
				return nil
			}
			done[st.Ino] = true
		}
		// All of them are on their way to the disk before the first is waited for.
		if each(root, rel, func(f *os.File) error { return flush(f, unix.SYNC_FILE_RANGE_WRITE) }) {
			names = append(names, rel)
		}
		return nil
	})
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for _, rel := range names {
		each(root, rel, func(f *os.File) error { return settle(f, buf) })
	}
	return nil
}

// each does something to a program, and says whether it is one and that succeeded.
func each(root *os.Root, rel string, do func(*os.File) error) bool {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(elf.ELFMAG))
	if _, err := f.ReadAt(head, 0); err != nil || string(head) != elf.ELFMAG {
		return false
	}
	return do(f) == nil
}

// settle drops what memory holds of a file and reads it back.
func settle(f *os.File, buf []byte) error {
	// What is not on the disk yet would not be dropped.
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if err := flush(f, all); err != nil {
		return err
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return err
	}
	for {
		if _, err := f.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func flush(f *os.File, how int) error {
	return unix.SyncFileRange(int(f.Fd()), 0, 0, how)
}
