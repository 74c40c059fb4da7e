"""Published test campaigns that are widely quoted but not part of the standard.

base.py         shared options and initial states
datacentre.py   the white paper of a data-centre drive (Samsung PM863, 2015)
consistency.py  a reviewer's test of performance consistency (AnandTech)
blocksizes.py   two generations of a drive compared by block size, with power (840 v 850)
act.py          the Aerospike certification test, and the search for its largest load
endurance.py    write amplification of a workload, and the lifetime that results
ssd_iq.py       skewed, static and open-loop loads (SSD-iq)
"""
