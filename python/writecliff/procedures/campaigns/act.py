"""ACT, the Aerospike certification test: can a drive serve a database at so many times "1x"?

Reads of records at a fixed rate beside large-block reads and writes, for 24 hours on a drive that
was written over twice before (act_prep). It passes if in every hour fewer than 5 % of the reads
took longer than 1 ms, 1 % longer than 8 ms and 0.1 % longer than 64 ms; it is stopped if the load
falls behind its schedule by 10 s. The load is that of `act_load.py`, the judgement that of
`act_judge.py`.

Stages:

    search   (on demand) tests of one slice each, at loads by doubling and halving, for the largest
             one that is passed; one round is one step
    certify  the whole test at that load or at the given one; after a search that was too hopeful
             again at one less
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import RECIPES
from writecliff.errors import ConfigError
from writecliff.procedures.campaigns.act_judge import (
    LIMITS_PCT,
    Trial,
    next_multiple,
    split_by_load,
    step_figures,
    trial_of,
)
from writecliff.procedures.campaigns.act_load import (
    MODELS,
    READS_PER_S,
    WRITES_PER_S,
    Rates,
    jobs_of,
    rates_of,
)
from writecliff.procedures.campaigns.base import CampaignOptions, CampaignProcedure, campaign_rule
from writecliff.procedures.model import End, History, Stage, StageHistory, Step, StepRow
from writecliff.procedures.options import PERCENT, QUEUE_DEPTH, SECONDS, THREADS, Within, option
from writecliff.workload.model import KIB, Workload

SEARCH, CERTIFY = "search", "certify"
LOAD = re.compile(r"(\d+(?:\.\d+)?)x?")
RATE = Within(0, 1e9)
CPUS = 8  # of a host that is not said; ACT starts five service threads for each
_FAST, _SLOW, _WORST = LIMITS_PCT.items()


@dataclass(frozen=True, kw_only=True)
class ActOptions(CampaignOptions):
    """Options of ACT, as its configuration file names them. None stands for ACT's default."""

    model: str = option("6.x", "load model: of ACT 6.x, or of 3.x (and 2.x)", choices=MODELS)
    load: str = option("1x", "load as a multiple of 2,000 reads and 1,000 writes a second")
    search: bool = option(False, "find the largest load that the drive passes, from --load on")
    search_max: int = option(96, "largest multiple of the search", within=Within(1, 10_000))
    state: str = option(
        "act",
        "the state that it begins in",
        rule=campaign_rule("act"),
        choices=tuple(RECIPES),
    )
    read_reqs_per_sec: int | None = option(
        None, "reads of records a second (default: by --load)", within=RATE
    )
    write_reqs_per_sec: int | None = option(
        None, "written records a second (default: by --load)", within=RATE
    )
    test_duration_sec: float | None = option(
        None, "length of the test", rule=campaign_rule(86400.0), within=SECONDS, quick=60.0
    )
    report_interval_sec: float | None = option(
        None,
        "length of a step, after which the log has a dump (ACT: 1; a minute is 1,440 steps a day)",
        within=SECONDS,
        quick=5.0,
    )
    slice_sec: float | None = option(
        None,
        "length of a slice of the table, and of a test of the search",
        rule=campaign_rule(3600.0),
        within=SECONDS,
        quick=20.0,
    )
    microsecond_histograms: bool = option(False, "histograms of the log in µs, not ms")
    record_bytes: int = option(1536, "size of a record", within=Within(1, 8 << 20))
    record_bytes_range_max: int = option(
        0,
        "largest record; all sizes from record-bytes on are alike",
        within=Within(0, 8 << 20),
    )
    large_block_op_kbytes: int = option(128, "size of a large block", within=Within(1, 8 << 10))
    replication_factor: int = option(1, "copies of each written record", within=Within(1, 1000))
    update_pct: float = option(0.0, "writes that read their record first", within=PERCENT)
    defrag_lwm_pct: float = option(50.0, "low water mark of defragmentation", within=Within(0, 99))
    no_defrag_reads: bool = option(False, "no reads of large blocks")
    compress_pct: float = option(
        100.0, "size of the data after compression, in percent", within=PERCENT
    )
    disable_odsync: bool = option(False, "writes without O_DSYNC: no flush after each")
    commit_to_device: bool = option(False, "each written record is written by itself")
    tomb_raider: bool = option(False, "the whole drive is read in order beside the load")
    tomb_raider_sleep_usec: int = option(0, "pause between these reads", within=Within(0, 1e9))
    max_lag_sec: float = option(
        10.0, "lag that stops the test; 0: none does", within=Within(0, 1e6)
    )
    service_threads: int = option(
        5 * CPUS, "threads of the model 6.x (five a CPU, of eight)", within=THREADS
    )
    num_queues: int = option(2, "queues of the model 3.x", within=THREADS)
    threads_per_queue: int = option(8, "their threads", within=QUEUE_DEPTH)
    large_block_ops_per_sec: float = option(
        0.0, "large-block reads, and writes, a second (2.x; 0: derived)", within=RATE
    )
    read_req_num_512_blocks: int = option(
        0, "size of a read in sectors (2.x; 0: by record-bytes)", within=Within(0, 1 << 14)
    )


class Act(CampaignProcedure):
    """The certification test, its options settled and checked (else ConfigError)."""

    name = "act"
    options_type = ActOptions

    def __init__(self, options: ActOptions | None = None) -> None:
        super().__init__(options)
        o = self.options
        multiple = load_multiple(o.load)
        if multiple != round(multiple) and o.search:
            raise ConfigError(f"a search is of whole multiples, not of {o.load}")
        reads, writes = o.read_reqs_per_sec, o.write_reqs_per_sec
        if reads is None and writes is None:
            reads, writes = round(READS_PER_S * multiple), round(WRITES_PER_S * multiple)
        self.options = replace(
            o,
            read_reqs_per_sec=reads or 0,
            write_reqs_per_sec=writes or 0,
            report_interval_sec=o.report_interval_sec or min(60.0, o.test_duration_sec),
        )
        self.multiple = max((reads or 0) / READS_PER_S, (writes or 0) / WRITES_PER_S)
        self._check_load()

    def _check_load(self) -> None:
        o = self.options
        if o.read_reqs_per_sec + o.write_reqs_per_sec == 0:
            raise ConfigError("there is no load", hint="give --load 1x")
        large = o.large_block_op_kbytes
        if large & (large - 1):
            nearest = 1 << round(math.log2(large))
            raise ConfigError(
                f"large-block-op-kbytes is a power of two, not {large}",
                hint=f"the nearest is {nearest}",
            )
        if max(o.record_bytes, o.record_bytes_range_max) > large * KIB:
            raise ConfigError("a record is larger than a large block")
        if 0 < o.record_bytes_range_max <= o.record_bytes:
            raise ConfigError("record-bytes-range-max must be more than record-bytes")
        if o.disable_odsync and o.commit_to_device:
            raise ConfigError("disable-odsync and commit-to-device exclude each other")

    # -- the load ---------------------------------------------------------------------------

    def rates(self, multiple: float | None = None) -> Rates:
        """Of a load, in proportion to the given one (None)."""
        return rates_of(self.options, 1.0 if multiple is None else multiple / self.multiple)

    @property
    def steps_a_slice(self) -> int:
        return _whole(self.options.slice_sec / self.options.report_interval_sec)

    @property
    def steps_of_test(self) -> int:
        return _whole(self.options.test_duration_sec / self.options.report_interval_sec)

    def _step(
        self, identity: DeviceIdentity, phase: str, multiple: float, number: int, place: int
    ) -> Step:
        o = self.options
        rates = self.rates(multiple)
        seconds = o.report_interval_sec
        jobs = jobs_of(o, rates, sector_bytes=identity.sector_bytes, seconds=seconds)
        name = f"{multiple:g}x, to {number * seconds:g} s"
        # As text: a multiple that was stored comes back as another type of number.
        step = self.step(name, Workload(name, jobs), phase, f"{multiple:g}", place)
        return replace(step, figures=lambda result: step_figures(result, jobs, multiple))

    def _compressible(self, load: Workload) -> Workload:
        """The jobs say it themselves (compress-pct)."""
        return load

    # -- what came of it --------------------------------------------------------------------

    def trials(self, rows: Sequence[StepRow], phase: str) -> list[Trial]:
        """The tests of a stage, in their order."""
        wanted = self.steps_a_slice if phase == SEARCH else self.steps_of_test
        return [
            trial_of(load, part, steps_a_slice=self.steps_a_slice, steps_wanted=wanted)
            for load, part in split_by_load(rows)
        ]

    def over(self, trial: Trial, phase: str) -> bool:
        """Nothing more is done at this load. A search needs no more than the first failure; the
        test itself is only stopped by lag, as ACT is."""
        lag = self.options.max_lag_sec
        stopped = trial.failed(lag) if phase == SEARCH else trial.stopped(lag)
        return stopped or trial.complete

    def passed(self, trial: Trial) -> bool:
        return trial.complete and not trial.failed(self.options.max_lag_sec)

    def next_load(self, rows: Sequence[StepRow], phase: str, first: float) -> float:
        """The load of the next step; 0: the stage is done."""
        trials = self.trials(rows, phase)
        if trials and not self.over(trials[-1], phase):
            return trials[-1].multiple
        if phase == SEARCH:
            lag = self.options.max_lag_sec
            good = [round(item.multiple) for item in trials if not item.failed(lag)]
            bad = [round(item.multiple) for item in trials if item.failed(lag)]
            return next_multiple(good, bad, round(first), self.options.search_max)
        if not trials:
            return first
        hopeful = self.options.search and not self.passed(trials[-1])
        return max(0.0, trials[-1].multiple - 1) if hopeful else 0.0

    def found(self, history: History) -> float:
        """The load to certify: what the search found (0: nothing), or the given one."""
        stage = history.stages.get(SEARCH)
        if not self.options.search or stage is None:
            return self.multiple
        lag = self.options.max_lag_sec
        trials = self.trials(stage.rows, SEARCH)
        return max((item.multiple for item in trials if not item.failed(lag)), default=0.0)

    # -- the parts of the test --------------------------------------------------------------

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        names = (SEARCH, CERTIFY) if self.options.search else (CERTIFY,)
        return [self._stage(identity, name, first=name == names[0]) for name in names]

    def _stage(self, identity: DeviceIdentity, phase: str, *, first: bool) -> Stage:
        def steps(history: History, number: int) -> Sequence[Step]:
            stage = history.stages.get(phase)
            first_load = self.multiple if phase == SEARCH else self.found(history)
            rows = stage.rows[: number - 1] if stage is not None else []
            load = self.next_load(rows, phase, first_load)
            if not load:
                return ()
            same = split_by_load(rows)
            done = len(same[-1][1]) if same and same[-1][0] == load else 0
            return [self._step(identity, phase, load, done + 1, number)]

        def reached(stage: StageHistory) -> bool:
            return not self.next_load(stage.rows, phase, self.multiple)

        return Stage(
            phase=phase,
            title="search for the largest load" if phase == SEARCH else "test",
            steps=steps,
            ends=(End(phase, "all that was asked for is tested", reached, per_round=True),),
            rounds_max=None if self.options.search else self.steps_of_test,
            purge=first,
            state=self.state(identity, self.options.state) if first else (),
        )

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o, rates = self.options, self.rates()
        threads = f"{o.num_queues} x {o.threads_per_queue}"
        return {
            **super().setup(identity),
            "precondition": RECIPES[o.state],
            "test: Load": f"{self.multiple:g}x, model {o.model}",
            "test: Reads": f"{rates.reads:g} a second, {rates.stored_bytes} B",
            "test: Large-block reads": f"{rates.large_reads:.2f} a second",
            "test: Large-block writes": f"{rates.large_writes:.2f} a second",
            "test: Large block": f"{o.large_block_op_kbytes} KiB",
            "test: Threads": threads if o.model == "3.x" else str(o.service_threads),
            "test: Duration": _duration(o.test_duration_sec),
            "test: Search": f"up to {o.search_max}x" if o.search else "no",
        }

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        o, rates = self.options, self.rates()
        search = (
            f"search: tests of {o.slice_sec:g} s from {self.multiple:g}x on, by doubling and "
            f"halving, up to {o.search_max}x",
        )
        return (
            "purge the drive",
            f"prepare: {RECIPES[o.state]}",
            *(search if o.search else ()),
            f"test {'what was found' if o.search else f'{self.multiple:g}x'} for "
            f"{_duration(o.test_duration_sec)}: {rates.reads:g} reads of records, "
            f"{rates.large_reads:.2f} large-block reads and {rates.large_writes:.2f} large-block "
            f"writes a second{' at the first load' if o.search else ''}",
        )

    def warnings(self, history: History) -> Sequence[str]:
        o = self.options
        texts = []
        if o.test_duration_sec < o.slice_sec:
            texts.append("the test is shorter than a slice: all of it was judged as one")
        stage = history.stages.get(CERTIFY)
        for trial in self.trials(stage.rows, CERTIFY) if stage is not None else ():
            if trial.stopped(o.max_lag_sec):
                texts.append(
                    f"{trial.multiple:g}x was stopped after {len(trial.rows)} steps: the drive "
                    f"cannot keep up (more than {o.max_lag_sec:g} s behind the schedule)"
                )
        return texts


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds:g} s"


def _whole(steps: float) -> int:
    return max(1, round(steps))


def load_multiple(text: str) -> float:
    """ "3x" is 3. Raises ConfigError."""
    match = LOAD.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"'{text}' is no load", hint="write it as 1x, 3x, 12x")
    return float(match[1])
