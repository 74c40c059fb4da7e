"""Class defaults of current NVMe drives: what data sheets leave out, the same for all of them.

Each value is set from measurements of several drives, which its comment names, so it is no
prediction of these figures; `docs/guides/catalogue.md` reports the errors on figures that were not
used. A device file marks such a value "class default".
"""

from __future__ import annotations

CLASS_DEFAULT = "class default of current NVMe drives"

# Levels that a page type must distinguish, over the mean: codes with 2, 3 and 2 levels for three
# bits, 4, 4, 4 and 3 for four. Reads of one page type in three take 15 % longer than the mean,
# which is the 99th percentile of random reads at queue depth 1 over their mean: 1.17 to 1.19 on
# Samsung PM9A3 and 980 PRO.
READ_SHARES: dict[int, list[float]] = {
    1: [1.0],
    2: [0.9, 1.1],
    3: [0.925, 1.15, 0.925],
    4: [1.02, 1.02, 1.02, 0.94],
}

# Reads beside 10,000 to 50,000 writes a second wait up to 300 us for a program: 99th percentiles of
# 237 to 396 us (Samsung PM9A3, SK hynix PE8110), 501 us (Kioxia CM7-R), 257 us (Micron 7450 MAX).
PROGRAM_STEPS = 4
MAX_PROGRAM_STEP_US = 400.0
# Their 99.99th percentiles, 526 to 1,780 us, are those of reads that wait for an erase.
ERASE_STEPS = 5

# Firmware time of a suspension, from 70/30 mixes of Micron 7600 MAX 12.8 TB and 9550 MAX 3.2 TB,
# and from the median share, 0.61, that eight mixes of these two families reach of their pure rates.
SUSPEND_US = 10.0

# Random 4 KiB writes to a fresh drive: 927,000 a second on Kioxia CM7-R, whose sequential writes
# would allow 1.6 million. Slower drives are bounded by their sequential writes.
WRITE_COMMAND_US = 1.08

# Delays of single commands: 99.9th percentiles of light writes are 1.5 to 1.9 times their median
# (PM9A3, PE8110, CM7-R).
HICCUP_PROBABILITY = 0.002
HICCUP_SHARE = 0.5  # of the latency of a write

# One read in some thousands is repeated on a drive with little wear: the 99.99th percentile of
# random reads at queue depth 1 is 1.5 to 2 times the mean (Samsung PM1733, 980 PRO). Error rates
# grow with wear to the rate that retries of worn flash imply, one read in twenty.
RBER, RBER_AT_RATED, RBER_SPREAD = 1e-3, 3e-3, 0.55
CODEWORD_KIB, CORRECTABLE = 2, 120
RETRY_GAIN, RETRIES_MAX = 0.3, 10

# 16 KiB sequential reads at queue depth 1 take the latency of the controller alone (Micron 9550
# MAX: 15 us). The window covers tR at the rate of one thread that reads 128 KiB.
READ_AHEAD_MIB = 1

# Data per entry of the map of drives with four bits a cell and 30 TB or more: 16 KiB, as the
# sources of Micron 6600 ION and Kioxia LC9 state. Sequential streams whose units merge.
LARGE_BYTES = 30e12
UNIT_SLOTS = 4
MERGED_UNITS = 16
