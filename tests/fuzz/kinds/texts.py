"""Line-based files: fio jobs, published figures, ACT configurations."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.fuzz import mutate
from tests.fuzz.kinds import Kind
from tests.support.small_drive import write_small_drive

JOBS = (
    "[global]\nioengine=libaio\ndirect=1\nbs=4k\nsize=64m\nruntime=20ms\ntime_based\n[w]\nrw=randwrite\niodepth=32\nnumjobs=2\n",
    "[seq]\nrw=write\nbs=128k\nsize=50%\nio_size=4m\nloops=2\n[r]\nstonewall\nrw=randread\nbs=512-64k\nnumber_ios=1k\n",
    "[m]\nrw=randrw\nrwmixread=70\nbssplit=4k/60:64k/40\nsize=32m\nio_size=1m\nrandom_distribution=zipf:1.2\nrate_iops=5000\n",
    "[z]\nrw=randwrite\nrandom_distribution=zoned:60/10:30/20:8/30:2/40\nbs=8k\nsize=64m\nnumber_ios=300\nthinktime=100us\n"
    "thinktime_blocks=16\nstartdelay=5ms\nlog_avg_msec=1\nwrite_iops_log=x\n",
    "[s]\nrw=randwrite\nbs=4k\nsize=16m\nruntime=4s\nss=iops:5%\nss_dur=2s\nss_ramp=0\n[l]\nstonewall\nrw=randread\nbs=4k\n"
    "size=16m\nlatency_target=500us\nlatency_window=100ms\nlatency_percentile=99\niodepth=16\nruntime=1s\n",
    "[t]\nrw=randwrite\nbs=64k\nsize=8m\nzonemode=zbd\nzonesize=1m\nmax_open_zones=4\nio_size=2m\n",
    "[v]\nrw=write\nbs=4k\nverify=crc32c\nsize=1m\noffset=25%\noffset_increment=1m\nnumjobs=3\ngroup_reporting\n"
    "percentile_list=50:99:99.9\nlat_percentiles=1\nrate=10m,5m\nrate_process=poisson\n",
)  # fmt: skip
FIO_VALUES = ["0", "1", "2", "7", "64", "100", "4k", "64k", "1m", "512", "0x200", "50%", "100%", "3%", "4k,8k", ",8k", "4k-16k", "4k/50:8k/50", "4k/:8k/", "zipf:1.2", "zipf", "zoned:50/10:50/90", "zoned_abs:90/1m:10/1m", "randrw", "randwrite", "trim", "rw", "write", "psync", "libaio", "none", "poisson", "10s", "5ms", "1h", "100us", "99:99.9", "-1", "-4k", "1.5g", "(4k*2)", "(1", "none,", "::", "/", ",", "-", ":", "0%", "$ncpus", "$pagesize*2", "random", "1,2,3,4", "=", "é", "1e5", "zbd", "strided", "2z", "write_same", "²", "4k²", "zipf:²", "zipf:inf", "zipf:1e308", "normal:0", "pareto:1e-320", "9999999999d", "1e9s", "1000000000s", "100000", "0:1", "iops_slope:0.1%", "bw:0", "2147483648", "1000000"] + ["9" * 5000, "(" * 100_000 + "1", "(" * 5000 + "1" + ")" * 5000, "1:" * 3000, "4k/1:" * 3000]  # fmt: skip

ACT = """\
# An ACT configuration
device-names: /dev/nvme0n1
service-threads: 16
test-duration-sec: 1
report-interval-sec: 1
read-reqs-per-sec: 200
write-reqs-per-sec: 100
record-bytes: 1536
record-bytes-range-max: 4096
large-block-op-kbytes: 128
replication-factor: 1
update-pct: 10
defrag-lwm-pct: 50
compress-pct: 50
disable-odsync: no
commit-to-device: yes
tomb-raider: yes
tomb-raider-sleep-usec: 1000
microsecond-histograms: no
max-lag-sec: 10
scheduler-mode: noop
"""
FIGURES = """\
source,item,device,baseline,access,block_kib,read_pct,oio,metric,value,unit,note
paper,table 1,DRIVE,,random,4,100,32,iops,100000,IOPS,
paper,table 1,DRIVE,,random,4,0,32,latency_max,10,ms,"read, from a plot"
paper,table 1,DRIVE,,sequential,128,0,4,throughput,400,MB/s,
paper,table 2,DRIVE,,random,4,70,QD1-QD8,latency_max,1,ms,
paper,table 2,DRIVE,,random,8,0,1,latency_p99.9,1,ms,
paper,table 2,DRIVE,,random,4,0,32,iops_consistency,90,%,
paper,table 2,DRIVE,DRIVE,random,4,0,32,iops_improvement,50,%,
paper,table 3,DRIVE,,,,,,tbw,10,TB,
"""
METRICS = ["iops", "throughput", "latency_mean", "latency_max", "latency_p999", "latency_p9999", "iops_consistency", "iops_improvement", "waf", "tbw", "dwpd", "power_active", "iops_sd", "latency_sd", "random", "sequential", "mixed", "QD1-QD9999999999", "QD²-QD³", "1e308", "-1", "oltp", "DRIVE", "840-256", "hdd-15k-80", "../x", "/dev/zero"]  # fmt: skip


def small_drive(corpus: Path) -> None:
    """Write the device file of the cases."""
    write_small_drive(corpus)


def _fio(corpus: Path, folder: Path, draw: Random) -> list[str]:
    from writecliff.workload.fiojob.options import all_options

    names = [option.name for option in all_options()]
    data = mutate.text(draw.choice(JOBS), draw, names, FIO_VALUES)
    if draw.random() < 0.1:  # Replace the value of one option.
        data = f"[j]\nsize=1m\nrw=randrw\n{draw.choice(names)}={draw.choice(FIO_VALUES)}\n".encode()
    if draw.random() < 0.01:
        data = b"[global]\nrw=read\nsize=4k\n" + b"".join(b"[j%d]\n" % n for n in range(100_000))
    (folder / "case.fio").write_bytes(data)
    if draw.random() < 0.15:
        return ["fio", f"--on=sim:{corpus}/small.toml", "--output-format=json", "case.fio"]
    more = draw.choice((["--dry-run"], ["--output", "out"], ["--output", "out", "--json"]))
    return ["run", "case.fio", "--on", f"sim:{corpus}/small.toml", *more]


def _act(corpus: Path, folder: Path, draw: Random) -> list[str]:
    from writecliff.procedures.campaigns.act_config import ITEMS, WITHOUT_EFFECT

    (folder / "act.conf").write_bytes(
        mutate.text(ACT, draw, [*ITEMS, *WITHOUT_EFFECT], ["yes", "no", "²", "1", "0"])
    )
    more = draw.choice((["--dry-run"], ["--output", "out"], ["--output", "out", "--json"]))
    return ["lab", "act", "run", "act.conf", "--on", f"sim:{corpus}/small.toml", *more]


def _figures(corpus: Path, folder: Path, draw: Random) -> list[str]:
    text = FIGURES.replace("DRIVE", f"{corpus}/small.toml")
    if draw.random() < 0.5:  # A single row lets more rows be simulated.
        lines = text.splitlines(keepends=True)
        text = lines[0] + draw.choice(lines[1:])
    (folder / "figures.csv").write_bytes(mutate.text(text, draw, METRICS, METRICS))
    return [
        "reproduce",
        "--figures",
        "figures.csv",
        "--short",
        "--output",
        "out",
        "--jobs",
        "1",
    ]


KINDS = (
    Kind("fio", small_drive, _fio),
    Kind("act", small_drive, _act),
    Kind("figures", small_drive, _figures),
)
