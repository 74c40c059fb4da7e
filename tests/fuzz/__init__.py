"""Fuzz the command line with mutated files of every kind that writecliff reads.

`python -m tests.fuzz --kind act --cases 2000 --seed 7` lists the code locations where cases fail.
Each case is reproducible: kind, seed and number determine its file.
"""
