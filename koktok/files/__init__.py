"""Whole-or-nothing writing, runs that resume, the cache folder.

In: a path, and contents or a function that writes them. Out: a file or a folder that is there whole or not at all, in which
nothing is deleted or replaced that koktok did not write (law 12). Reading changes nothing.
"""

from koktok.files.checked import FETCH_LFS, LFS_POINTER, MOST_TEXT, checked, open_regular, read_bounded, read_utf8
from koktok.files.paths import (
    cache_dir,
    is_plain,
    path_of,
    place_of,
    scratch,
    sha256_of,
    sweep,
    typed,
    workplace,
    workplace_of,
    writing,
)
from koktok.files.resume import MANIFEST, Checkpoint, read_manifest, resumable, write_manifest, written
from koktok.files.write import (
    Product,
    check_file,
    check_folder,
    is_intact,
    own_names,
    read_whole,
    refuse_another,
    standing,
    write_file,
    write_folder,
)

__all__ = [
    "FETCH_LFS",
    "LFS_POINTER",
    "MANIFEST",
    "MOST_TEXT",
    "Checkpoint",
    "Product",
    "cache_dir",
    "check_file",
    "check_folder",
    "checked",
    "is_intact",
    "is_plain",
    "open_regular",
    "own_names",
    "path_of",
    "place_of",
    "read_bounded",
    "read_manifest",
    "read_utf8",
    "read_whole",
    "refuse_another",
    "resumable",
    "scratch",
    "sha256_of",
    "standing",
    "sweep",
    "typed",
    "workplace",
    "workplace_of",
    "write_file",
    "write_folder",
    "write_manifest",
    "writing",
    "written",
]
