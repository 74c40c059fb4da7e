"""Figures of real drives, and simulated drives measured under their conditions.

`figures.csv` has the published figures; `conditions.py` gives the conditions of a figure,
`measure.py` measures simulated drives under them, `scores.py` compares, `fit.py` estimates
parameters of drives from figures. `held_out.py` has the errors of held-out figures. No figure is
adjusted after the simulation. `writecliff.lab.published` compares all published figures.
"""
