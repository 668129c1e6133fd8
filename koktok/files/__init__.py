"""Whole-or-nothing writing, the cache folder, digests.

In: a path, and contents or a function that writes them. Out: a file or a folder that is there whole or not at all, in which
nothing is deleted or replaced that koktok did not write.
"""

from koktok.files.checkpoint import Checkpoint, noted_files, whole
from koktok.files.file import check_file, write_file
from koktok.files.product import Product, check_folder, publish, read_settled, scratch, settle, sweep, write_folder
from koktok.files.run import read_manifest, resumable, writing
from koktok.files.workplace import (
    LOCK,
    cache_dir,
    path_of,
    place_of,
    probe,
    sha256_of,
    sync,
    typed,
    workplace,
    workplace_of,
)

__all__ = [
    "LOCK",
    "Checkpoint",
    "Product",
    "cache_dir",
    "check_file",
    "check_folder",
    "noted_files",
    "path_of",
    "place_of",
    "probe",
    "publish",
    "read_manifest",
    "read_settled",
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
