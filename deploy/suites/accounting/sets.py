#!/usr/bin/env python3
"""Makes one of the file sets of the accounting suite, the same bytes each time.

    sets.py SET small|full DIR

zero_small, zero_large, random_medium, halfzero_large and random_large are one
file each. release is one release of a project, releases are ten of them side by
side, bigfiles the same ten as one file each, everything is all of the above.

The releases are those in releases/*.tar beside this file, in order of their
names; without these they are made up: text files of which a fifth change from
one release to the next, by a twentieth of their lines.
"""

import functools
import glob
import io
import os
import random
import sys
import tarfile

KIB, MIB = 1 << 10, 1 << 20
SIZES = {  # bytes at full and small size
    "zero_small": (10 * KIB, 10 * KIB),
    "zero_large": (100 * MIB, 1 * MIB),
    "random_medium": (10 * MIB, 100 * KIB),
    "halfzero_large": (100 * MIB, 1 * MIB),
    "random_large": (100 * MIB, 1 * MIB),
}
RELEASES = 10
FILES = (800, 16)  # of a made-up release
LINES = 200  # of each of its files
CHANGED_FILES, CHANGED_LINES = 0.2, 0.05
WORDS = "if else for while return int long char const struct size list node next count buf len ptr err out map key".split()


def rng(*seed):
    return random.Random(":".join(str(s) for s in seed))


def pick(r, values):
    return values[int(r.random() * len(values))]


def line(r):
    return "\t" * int(r.random() * 4) + " ".join(pick(r, WORDS) for _ in range(2 + int(r.random() * 9))) + ";\n"


@functools.lru_cache
def made_up(small):
    """The made-up releases: for each a list of pairs of name and bytes."""
    releases = [[] for _ in range(RELEASES)]
    for i in range(FILES[small]):
        name, r = "lib%02d/part%03d.c" % (i % 20, i), rng("file", i)
        text = [line(r) for _ in range(LINES)]
        data = "".join(text).encode()
        for n, release in enumerate(releases):
            r = rng("change", i, n)
            if n > 0 and r.random() < CHANGED_FILES:
                for _ in range(int(LINES * CHANGED_LINES)):
                    text[int(r.random() * len(text))] = line(r)
                data = "".join(text).encode()
            release.append((name, data))
    return releases


def given():
    return sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "releases", "*.tar")))


def count():
    return len(given()) or RELEASES


def unpack(n, small, to):
    tars = given()
    if tars:
        with tarfile.open(tars[n]) as t:
            t.extractall(to)
        return
    for name, data in made_up(small)[n]:
        write(os.path.join(to, name), [data])


def pack(n, small, to):
    tars = given()
    if tars:
        with open(tars[n], "rb") as f:
            write(to, iter(lambda: f.read(MIB), b""))
        return
    with tarfile.open(to, "w") as t:
        for name, data in made_up(small)[n]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))


def write(path, chunks):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        for c in chunks:
            f.write(c)


def chunks(kind, size):
    """A file's bytes: zero, random, or the one half and then the other."""
    r = rng(kind, size)
    for at in range(0, size, 64 * KIB):
        n = min(64 * KIB, size - at)
        if kind == "zero" or kind == "halfzero" and at < size // 2:
            yield bytes(n)
        else:
            yield r.randbytes(n)


def make(name, small, to):
    os.makedirs(to, exist_ok=True)
    if name in SIZES:
        write(os.path.join(to, name), chunks(name.split("_")[0], SIZES[name][small]))
    elif name == "release":
        unpack(count() - 1, small, to)
    elif name == "releases":
        for n in range(count()):
            unpack(n, small, os.path.join(to, "release%02d" % n))
    elif name == "bigfiles":
        for n in range(count()):
            pack(n, small, os.path.join(to, "release%02d.tar" % n))
    elif name == "everything":
        for part in list(SIZES) + ["release", "releases", "bigfiles"]:
            make(part, small, os.path.join(to, part))
    else:
        sys.exit("sets.py: no set %r: there are %s, release, releases, bigfiles, everything" % (name, ", ".join(SIZES)))


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ("small", "full"):
        sys.exit("use: sets.py SET small|full DIR")
    make(sys.argv[1], sys.argv[2] == "small", sys.argv[3])


if __name__ == "__main__":
    main()
