"""Commands that are killed at random moments, or run out of space, and are then taken up again.

`python -m tests.kills --count 200 --seed 7` says of each kind of command how many of its trials ended
as the undisturbed run did. A trial is a number: the same kind, seed and number choose the same
moment, as a share of the processor time of the undisturbed run.
"""
