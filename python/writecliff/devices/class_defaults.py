"""Class defaults of current NVMe drives: values that data sheets omit, equal for all drives.

Each value is based on measurements of several drives, which its comment names. A class default is
therefore not a prediction of these measurements. `docs/guides/catalogue.md` reports the errors, and
which figures were known before a value was set. Device files mark such values as "class default".
"""

from __future__ import annotations

# Flash with 64 layers or more. Without these values, mixes with at least half writes on a new Intel
# P4610 of 2018 are 82 to 141 % too fast; with them, 27 to 54 %.
FIRST_YEAR = 2017
CLASS_DEFAULT = "class default of current NVMe drives"

# Read time of each page type relative to the mean, by bits per cell. Page types with more levels to
# distinguish take longer: 2, 3 and 2 levels with three bits, and 4, 4, 4 and 3 with four. One page
# type in three takes 15 % longer than the mean, to match the 99th percentile of random reads at
# queue depth 1, which is 1.17 to 1.19 times the mean on Samsung PM9A3 and 980 PRO.
READ_SHARES: dict[int, list[float]] = {
    1: [1.0],
    2: [0.9, 1.1],
    3: [0.925, 1.15, 0.925],
    4: [1.02, 1.02, 1.02, 0.94],
}

# Number of steps at which a program operation can be suspended. While 10,000 to 50,000 writes per
# second run, reads wait up to 300 us for a program operation. The 99th percentiles of such reads
# are 237 to 396 us (Samsung PM9A3, SK hynix PE8110), 501 us (Kioxia CM7-R) and 257 us (Micron 7450
# MAX).
PROGRAM_STEPS = 4
MAX_PROGRAM_STEP_US = 400.0
# Interval between the points at which an erase can be suspended. The 99.99th percentiles of the
# same reads, which wait for an erase, are 850 to 900 us (PM9A3), 930 to 1,500 us (PE8110), 1,200 to
# 1,600 us (7450 MAX) and 1,400 to 2,000 us (CM7-R) at 20,000 writes per second and more. The class
# default is near their geometric mean. SLC flash erases faster, and no measurements are available,
# so it has no steps.
ERASE_STEP_US = 1400.0

# Firmware time per suspension. The value is based on 70/30 mixes on Micron 7600 MAX 12.8 TB and
# 9550 MAX 3.2 TB, and on eight mixes on these two families, which reach a median of 0.61 of their
# pure rates. The value was 8 us until the errors of two more mixes (9550 MAX 6.4 TB and 12.8 TB)
# had been seen, so these two rates are not predictions either.
SUSPEND_US = 10.0

# Firmware time of a random 4 KiB write on a fresh drive: Kioxia CM7-R completes 927,000 such writes
# per second, although its sequential write rate would allow 1.6 million. On slower drives, the
# sequential write rate is the limit.
WRITE_COMMAND_US = 1.08

# Random delays of commands: at light load, the 99.9th percentile of writes is 1.5 to 1.9 times the
# median (PM9A3, PE8110, CM7-R). More than one command in a thousand is delayed, because the 99.9th
# percentile of reads at queue depth 1 is 1.1 to 1.5 times the 99th percentile (980 PRO, PM9A3).
HICCUP_PROBABILITY = 0.004
HICCUP_SHARE = 0.5  # relative to the write latency

# Read retries: a drive with little wear retries one read in several thousand, because the 99.99th
# percentile of random reads at queue depth 1 is 1.5 to 2 times the mean (Samsung PM1733, 980 PRO).
# The error rate grows with wear, up to the rate at which worn flash retries one read in twenty.
RBER, RBER_AT_RATED, RBER_SPREAD = 1e-3, 3e-3, 0.55
CODEWORD_KIB, CORRECTABLE = 2, 120
RETRY_GAIN, RETRIES_MAX = 0.3, 10

# Sequential 16 KiB reads at queue depth 1 take only the controller latency (Micron 9550 MAX: 15
# us). The read-ahead window covers tR at the rate at which one thread reads 128 KiB blocks.
READ_AHEAD_MIB = 1

# QLC drives of 30 TB or more map 16 KiB per entry, according to sources on Micron 6600 ION and
# Kioxia LC9. `MERGED_UNITS` partially written units wait in the buffer for the rest of their data.
LARGE_BYTES = 30e12
UNIT_SLOTS = 4
MERGED_UNITS = 16

# Program/erase cycles of data-centre flash. A drive's rated TBW applies to random writes, so the
# flash needs TBW x write amplification / raw bytes. Ten families of TLC drives of 800 GB to 15.36
# TB with 1 to 3 drive writes per day, whose own write amplification is 2.1 to 4.8, need 6,800 to
# 9,400 cycles. The class default is near the median.
RATED_CYCLES = {"tlc": 7500}
# Write amplification assumed in the ratings of client drives. The rated writes of client drives
# refer to the client workload of JESD219, whose write amplification is not published.
CLIENT_AMPLIFICATION = 1.5

# Power of data-centre drives. The idle power is the rated idle power of Solidigm D7-P5500 7.68 TB
# (5 W). The power of a program operation is set so that sequential writes at 10 GB/s draw the rated
# 16 W of Micron 9550 MAX. The other power values are those of older drives in the catalogue. Data
# sheets state limits, so most drives draw less than their rating: 14 W of 7600 MAX, 20 W of
# D7-P5500, 11 W of PM9A3 for reads.
POWER = {
    "idle": "5 W",
    "active": "1 W",
    "read": "50 mW",
    "program": "100 mW",
    "erase": "50 mW",
    "transfer": "0.1 W",
    "link": "1 W",
}
