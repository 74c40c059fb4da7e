"""Reproduces published figures of real drives with simulated drives.

`figures.csv` has the published figures; `conditions.py` gives the conditions of a figure,
`measure.py` measures simulated drives under them, `scores.py` compares, `fit.py` estimates
parameters of drives from figures. No figure is adjusted after the simulation.
"""
