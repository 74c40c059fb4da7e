"""Reports of the published campaigns.

common.py       steps by operation, the list of results, the page around them
datacentre.py   the data-centre white paper; datacentre_parts.py its sections
consistency.py  the reviewer's consistency test
blocksizes.py   two generations by block size, with power
act.py          the Aerospike certification test
endurance.py    write amplification and lifetime
improvement.py  one drive over another, from the results of two runs
"""
