package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Own gives a folder and all in it to the uid that programs run under, so that
// they may write there. Links are changed themselves, never followed. The folder
// itself is made enterable by its owner; other modes stay. When the bot is no
// root, or in unsafe mode, programs are the bot's own user already and only the
// folder's mode is set. The error names the first folder on the way that the uid
// may not enter.
func (s *Sandbox) Own(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("give away: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("give away: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("give away %s: not a folder", dir)
	}
	if err := os.Chmod(dir, info.Mode().Perm()|0o700); err != nil {
		return fmt.Errorf("give away: %w", err)
	}
	if !s.drop {
		return nil
	}
	uid := s.facts.UID
	if at := unreachable(filepath.Dir(dir), uid); at != "" {
		return fmt.Errorf("give away %s: uid %d cannot enter %s; choose a work folder whose parents everyone may enter (mode 0711)", dir, uid, at)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("give away %s: %w", dir, err)
	}
	return own(os.NewFile(uintptr(fd), dir), uid)
}

// own works on open folders and closes them: whoever owns a part of the tree
// already cannot put a link where a folder was.
func own(dir *os.File, uid int) error {
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("give away: %w", err)
	}
	fd := int(dir.Fd())
	for _, e := range entries {
		if e.IsDir() {
			sub, err := unix.Openat(fd, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("give away %s: %w", filepath.Join(dir.Name(), e.Name()), err)
			}
			if err := own(os.NewFile(uintptr(sub), filepath.Join(dir.Name(), e.Name())), uid); err != nil {
				return err
			}
			continue
		}
		if err := giveAt(fd, e.Name(), uid); err != nil {
			return fmt.Errorf("give away %s: %w", filepath.Join(dir.Name(), e.Name()), err)
		}
	}
	if err := unix.Fchown(fd, uid, uid); err != nil {
		return fmt.Errorf("give away %s: %w", dir.Name(), err)
	}
	return nil
}

// giveAt changes the owner of one file. To change it clears set-uid bits, as it
// should.
func giveAt(fd int, name string, uid int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Uid == uint32(uid) && st.Gid == uint32(uid) {
		return nil
	}
	err := unix.Fchownat(fd, name, uid, uid, unix.AT_SYMLINK_NOFOLLOW)
	if err == syscall.ENOENT {
		return nil // a build's background process removed it meanwhile
	}
	return err
}
