"""Whole-or-nothing writing, runs that resume, the cache folder.

In: a path, and contents or a function that writes them. Out: a file or a folder that is there whole or not at all, in which
nothing is deleted or replaced that koktok did not write (law 12). Reading changes nothing.
"""

from koktok.files.checked import checked, read_bounded
from koktok.files.paths import (
    LOCK,
    cache_dir,
    is_plain,
    path_of,
    place_of,
    probe,
    scratch,
    sha256_of,
    sync,
    typed,
    workplace,
    workplace_of,
)
from koktok.files.resume import Checkpoint, noted_files, read_manifest, resumable, whole, writing
from koktok.files.write import (
    READY,
    Product,
    check_file,
    check_folder,
    is_intact,
    publish,
    read_whole,
    refuse_another,
    settle,
    sweep,
    write_file,
    write_folder,
)

__all__ = [
    "LOCK",
    "READY",
    "Checkpoint",
    "Product",
    "cache_dir",
    "check_file",
    "check_folder",
    "checked",
    "is_intact",
    "is_plain",
    "noted_files",
    "path_of",
    "place_of",
    "probe",
    "publish",
    "read_bounded",
    "read_manifest",
    "read_whole",
    "refuse_another",
    "resumable",
    "scratch",
    "settle",
    "sha256_of",
    "sweep",
    "sync",
    "typed",
    "whole",
    "workplace",
    "workplace_of",
    "write_file",
    "write_folder",
    "writing",
]
