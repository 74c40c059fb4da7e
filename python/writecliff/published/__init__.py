"""Published figures of real drives, and simulated drives put to the same tests.

`figures.csv` holds what others have published; `conditions.py` says under which conditions a figure
was taken, `measure.py` puts simulated drives under them, `scores.py` compares, `fit.py` estimates
parameters of drives from figures. No simulated figure is touched after the simulation.
"""
