"""Hostile input: files of every kind that writecliff reads, mutated, through the command line.

`python -m tests.fuzz --kind act --cases 2000 --seed 7` names each place that fails. A case is a
number: the same kind, seed and number make the same file.
"""
