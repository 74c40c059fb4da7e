"""Class defaults of current NVMe drives: values that data sheets leave out, equal for all drives.

Each value is set from measurements of several drives, which its comment names. It therefore does
not predict these measurements. `docs/guides/catalogue.md` reports the errors, and which figures had
been seen before a value was set. A device file marks such a value "class default".
"""

from __future__ import annotations

# Flash of 64 layers and more. Mixes of half writes and more on a new Intel P4610 of 2018 are 82 to
# 141 % too fast without these values, 27 to 54 % with them.
FIRST_YEAR = 2017
CLASS_DEFAULT = "class default of current NVMe drives"

# Read time of each page type over the mean, by bits per cell. A page type with more levels to
# distinguish takes longer: 2, 3 and 2 levels for three bits, 4, 4, 4 and 3 for four. One page type
# in three takes 15 % longer than the mean, to match the 99th percentile of random reads at queue
# depth 1, which is 1.17 to 1.19 times their mean on Samsung PM9A3 and 980 PRO.
READ_SHARES: dict[int, list[float]] = {
    1: [1.0],
    2: [0.9, 1.1],
    3: [0.925, 1.15, 0.925],
    4: [1.02, 1.02, 1.02, 0.94],
}

# Number of suspendable steps of a program. Reads during 10,000 to 50,000 writes per second wait up
# to 300 us for a program. Their 99th percentiles are 237 to 396 us (Samsung PM9A3, SK hynix
# PE8110), 501 us (Kioxia CM7-R) and 257 us (Micron 7450 MAX).
PROGRAM_STEPS = 4
MAX_PROGRAM_STEP_US = 400.0
# Time between the points at which an erase can be suspended. The 99.99th percentiles of the same
# reads, which wait for an erase, are 850 to 900 us (PM9A3), 930 to 1,500 us (PE8110), 1,200 to
# 1,600 us (7450 MAX) and 1,400 to 2,000 us (CM7-R) from 20,000 writes per second on. The value is
# near their geometric mean. One bit per cell is erased faster, and nothing measured: no steps.
ERASE_STEP_US = 1400.0

# Firmware time of a suspension. Set from 70/30 mixes of Micron 7600 MAX 12.8 TB and 9550 MAX
# 3.2 TB, and from eight mixes of these two families, which reach a median of 0.61 of their pure
# rates. The value was 8 us until the errors of two more mixes (9550 MAX 6.4 TB and 12.8 TB) had
# been seen, so the rates of these two are not predictions either.
SUSPEND_US = 10.0

# Firmware time of a random 4 KiB write to a fresh drive: Kioxia CM7-R completes 927,000 per second,
# although its sequential write rate would allow 1.6 million. On slower drives the sequential write
# rate is the bound.
WRITE_COMMAND_US = 1.08

# Delays of single commands: at light load, the 99.9th percentile of writes is 1.5 to 1.9 times the
# median (PM9A3, PE8110, CM7-R). More than one command in a thousand is delayed: the 99.9th
# percentile of reads at queue depth 1 is 1.1 to 1.5 times the 99th (980 PRO, PM9A3).
HICCUP_PROBABILITY = 0.004
HICCUP_SHARE = 0.5  # of the latency of a write

# Read retries: a drive with little wear retries one read in several thousand, because the 99.99th
# percentile of random reads at queue depth 1 is 1.5 to 2 times the mean (Samsung PM1733, 980 PRO).
# The error rate grows with wear to the rate at which worn flash retries one read in twenty.
RBER, RBER_AT_RATED, RBER_SPREAD = 1e-3, 3e-3, 0.55
CODEWORD_KIB, CORRECTABLE = 2, 120
RETRY_GAIN, RETRIES_MAX = 0.3, 10

# 16 KiB sequential reads at queue depth 1 take only the latency of the controller (Micron 9550 MAX:
# 15 us). The window covers tR at the rate of one thread that reads 128 KiB.
READ_AHEAD_MIB = 1

# QLC drives of 30 TB or more map 16 KiB per entry, according to the sources of Micron 6600 ION and
# Kioxia LC9. `MERGED_UNITS` partly written units wait in the buffer for the rest of their data.
LARGE_BYTES = 30e12
UNIT_SLOTS = 4
MERGED_UNITS = 16

# Program/erase cycles of data-centre flash. The rated TBW of a drive means random writes, so the
# flash needs TBW x write amplification / raw bytes. Ten families of TLC drives of 800 GB to
# 15.36 TB and 1 to 3 drive writes per day, whose own write amplification is 2.1 to 4.8, need 6,800
# to 9,400. The value is near their median.
RATED_CYCLES = {"tlc": 7500}
# Write amplification at which client drives are rated: an assumption. The rated writes are those of
# the client workload of JESD219, whose write amplification is not published.
CLIENT_AMPLIFICATION = 1.5

# Power of data-centre drives. The idle power is the rating of Solidigm D7-P5500 7.68 TB (5 W). The
# power of a program results in the rated 16 W of Micron 9550 MAX at sequential writes of 10 GB/s.
# The other values are those of older drives of the catalogue. Sheets state limits, so most drives
# draw less than rated: 14 W of 7600 MAX, 20 W of D7-P5500, 11 W of PM9A3 for reads.
POWER = {
    "idle": "5 W",
    "active": "1 W",
    "read": "50 mW",
    "program": "100 mW",
    "erase": "50 mW",
    "transfer": "0.1 W",
    "link": "1 W",
}
