"""Class defaults for current NVMe drives, which replace values that data sheets omit.

Each value is based on measurements of several drives, which are named in a comment. Therefore, a
class default is not a prediction of the measurements that it is based on.
`docs/guides/catalogue.md` reports the errors, and the figures that were known before a value was
set. Device files mark such values as "class default".
"""

from __future__ import annotations

# The parameters in this module describe flash with 64 layers or more. Without these values, mixes
# with at least 50 % writes on a new Intel P4610 (2018) are 82 to 141 % too fast. With these values,
# the mixes are 27 to 54 % too fast.
FIRST_YEAR = 2017
CLASS_DEFAULT = "class default of current NVMe drives"

# Read time of each page type relative to the mean read time, by bits per cell. Page types that
# distinguish more voltage levels take longer: 2, 3 and 2 levels with three bits per cell, and 4, 4,
# 4 and 3 levels with four. One page type in three takes 15 % longer than the mean. This matches the
# 99th percentile of random reads at queue depth 1, which is 1.17 to 1.19 times the mean on Samsung
# PM9A3 and 980 PRO.
READ_SHARES: dict[int, list[float]] = {
    1: [1.0],
    2: [0.9, 1.1],
    3: [0.925, 1.15, 0.925],
    4: [1.02, 1.02, 1.02, 0.94],
}

# Number of steps after which a program operation can be suspended. During 10,000 to 50,000 writes
# per second, reads wait up to 300 us for a program operation. The 99th percentiles of reads that
# wait for programs are 237 to 396 us (Samsung PM9A3, SK hynix PE8110), 501 us (Kioxia CM7-R) and
# 257 us (Micron 7450 MAX).
PROGRAM_STEPS = 4
MAX_PROGRAM_STEP_US = 400.0
# Interval between two points where an erase can be suspended. At 20,000 or more writes per second,
# the 99.99th percentiles of reads that wait for an erase are 850 to 900 us (PM9A3), 930 to 1,500 us
# (PE8110), 1,200 to 1,600 us (7450 MAX) and 1,400 to 2,000 us (CM7-R). The class default is close
# to the geometric mean of these measurements. SLC flash has no erase steps, because it erases
# faster and no measurements are available.
ERASE_STEP_US = 1400.0

# Firmware time per suspension of a program or erase. The value is based on 70/30 mixes on Micron
# 7600 MAX 12.8 TB and 9550 MAX 3.2 TB, and on eight mixes on the 7600 MAX and 9550 MAX families,
# which reach a median of 0.61 of their pure rates. The value was 8 us before the errors of two more
# mixes (9550 MAX 6.4 TB and 12.8 TB) were known, so the rates of these mixes are not predictions
# either.
SUSPEND_US = 10.0

# Firmware time of a random 4 KiB write on a fresh drive: Kioxia CM7-R completes 927,000 random 4
# KiB writes per second on a fresh drive, although its sequential write rate would allow 1.6
# million. On slower drives, the sequential write rate limits random writes.
WRITE_COMMAND_US = 1.08

# Random command delays: at light load, the 99.9th percentile of writes is 1.5 to 1.9 times the
# median (PM9A3, PE8110, CM7-R). More than one command in a thousand is delayed. The evidence is
# that the 99.9th percentile of reads at queue depth 1 is 1.1 to 1.5 times the 99th percentile (980
# PRO, PM9A3).
HICCUP_PROBABILITY = 0.004
HICCUP_SHARE = 0.5  # Hiccup duration relative to the write latency.

# A drive with little wear retries one read in several thousand. The evidence is that the 99.99th
# percentile of random reads at queue depth 1 is 1.5 to 2 times the mean (Samsung PM1733, 980 PRO).
# The error rate grows with wear, up to the rate where worn flash retries one read in twenty.
RBER, RBER_AT_RATED, RBER_SPREAD = 1e-3, 3e-3, 0.55
CODEWORD_KIB, CORRECTABLE = 2, 120
RETRY_GAIN, RETRIES_MAX = 0.3, 10

# Sequential 16 KiB reads at queue depth 1 take only the controller latency (Micron 9550 MAX: 15
# us). The read-ahead window covers tR at the rate of one thread that reads 128 KiB blocks.
READ_AHEAD_MIB = 1

# QLC drives of 30 TB or more map 16 KiB per entry, according to sources on the Micron 6600 ION and
# the Kioxia LC9. `MERGED_UNITS` partially written units wait in the buffer for their remaining
# data.
LARGE_BYTES = 30e12
UNIT_SLOTS = 4
MERGED_UNITS = 16

# Program/erase cycles of flash in data-centre drives. The rated TBW of a drive applies to random
# writes, so the flash needs TBW x write amplification / raw bytes cycles. The default is based on
# ten families of TLC drives of 800 GB to 15.36 TB with 1 to 3 drive writes per day. At their own
# write amplification of 2.1 to 4.8, these drives need 6,800 to 9,400 cycles. The class default is
# close to the median of these drives.
RATED_CYCLES = {"tlc": 7500}
# Write amplification behind the endurance ratings of client drives. The rated writes of client
# drives refer to the JESD219 client workload, whose write amplification is not published.
CLIENT_AMPLIFICATION = 1.5

# Power consumption of data-centre drives. The idle power is the rated idle power of Solidigm
# D7-P5500 7.68 TB (5 W). The power of a program operation is chosen so that sequential writes at 10
# GB/s draw the 16 W for which the Micron 9550 MAX is rated. The other power values come from older
# drives in the catalogue. Data sheets state limits, so most drives draw less than their rated
# power: 14 W for 7600 MAX, 20 W for D7-P5500, and 11 W for PM9A3 during reads.
POWER = {
    "idle": "5 W",
    "active": "1 W",
    "read": "50 mW",
    "program": "100 mW",
    "erase": "50 mW",
    "transfer": "0.1 W",
    "link": "1 W",
}
