"""Published test campaigns as procedures: no standard tests, but such that figures are quoted of.

base.py        what all of them share: options, states, accesses
datacentre.py  a data-centre drive's white paper (Samsung PM863, 2015)
consistency.py a reviewer's test of performance consistency (AnandTech)
blocksizes.py  two generations compared by block size, with power (840 v 850)
act.py         the Aerospike certification test, and the search for its largest multiple
endurance.py   write amplification of a workload, and the lifetime that follows
"""
