"""Which drive? One load on many simulated drives, limits and weights, and an answer with reasons.

question.py    what is asked: load, limits, weights, prices; kept as choice.json
candidates.py  the drives that are compared
plan.py        a run for each of them
measured.py    the figures of a drive from its runs
certainty.py   how far off its model is elsewhere
ranking.py     who passes, in which order, and why the others lose
variants.py    what would change the answer
answer.py      all of it together
page.py        the page about it
"""
