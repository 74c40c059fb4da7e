"""Real drives under skewed, static and open-loop loads (SSD-iq), and simulated drives beside them.

Source: G. Haas, B. Lee, P. Bonnet, V. Leis, "SSD-iq: Uncovering the Hidden Side of SSD
Performance", PVLDB 18(11), 2025, and the data of its public artifact. `figures.csv` has measured
figures with the condition of each in words; `sheets.csv` has the data sheets of the drives. A drive
is derived from its sheet by rule (`drives`), a condition is read by rule (`conditions`), so tables
of other drives and loads work alike.
"""
