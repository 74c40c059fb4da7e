"""Real drives under skewed, static and open-loop loads (SSD-iq), and simulated drives beside them.

Source: G. Haas, B. Lee, P. Bonnet, V. Leis, "SSD-iq: Uncovering the Hidden Side of SSD
Performance", PVLDB 18(11), 2025, and the data of its public artifact
(https://github.com/gabriel-haas/ssdiq-pub, commit 8a0a3f4, folder `paper`). `figures.csv` has
measured figures with the condition of each in words; `run` is the folder in the artifact. What a
condition leaves out is the same in all runs of a kind (`conditions`). `sheets.csv` has the data
sheets of the drives. A drive is derived from its sheet by rule (`drives`), a condition is read by
rule, so tables of other drives and loads work alike.
"""
