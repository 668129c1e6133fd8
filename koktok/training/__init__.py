"""Trainers, a file each: a `Job` (words with cuts, a size, options) to a `Learnt` (a vocabulary and a log).

README.md in this folder explains the default trainer and names the files.
"""
