"""ACT, the Aerospike certification test, which finds the highest load a drive sustains.

The load is a multiple of "1x": fixed-rate record reads alongside large-block reads and writes, for
24 hours, on a drive that was overwritten twice beforehand (act_prep). The drive passes if, in every
hour, fewer than 5 % of the reads take longer than 1 ms, 1 % longer than 8 ms and 0.1 % longer than
64 ms. The test stops if the load falls more than 10 s behind schedule. `act_load.py` defines the
load, and `act_judge.py` defines the verdict.

Stages:

    search   (on demand) tests of one slice each, at loads chosen by doubling and bisection, for the
             largest one that passes; a round is one step
    certify  the whole test at that load, or at the given one; after a search, a failure repeats
             the test at the next lower load
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import RECIPES
from writecliff.errors import ConfigError
from writecliff.procedures.campaigns.act_config import ActOptions
from writecliff.procedures.campaigns.act_judge import (
    Trial,
    next_multiple,
    split_by_load,
    step_figures,
    trial_of,
)
from writecliff.procedures.campaigns.act_load import (
    READS_PER_S,
    WRITES_PER_S,
    Rates,
    jobs_of,
    rates_of,
)
from writecliff.procedures.campaigns.base import CampaignProcedure
from writecliff.procedures.model import End, History, Stage, StageHistory, Step, StepRow
from writecliff.workload.model import KIB, Workload

SEARCH, CERTIFY = "search", "certify"
LOAD = re.compile(r"(\d+(?:\.\d+)?)x?")


class Act(CampaignProcedure[ActOptions]):
    """The Aerospike certification test (ACT). Raises ConfigError if an option is invalid."""

    name = "act"
    options_type = ActOptions

    def settle(self, options: ActOptions, *, shorten: bool) -> ActOptions:
        """Derive the rates from the load, and the reporting interval from the duration."""
        o = super().settle(options, shorten=shorten)
        multiple = load_multiple(o.load)
        if multiple != round(multiple) and o.search:
            raise ConfigError(f"a search requires a load that is a whole multiple, not {o.load}")
        reads, writes = o.read_reqs_per_sec, o.write_reqs_per_sec
        if reads is None and writes is None:
            reads, writes = round(READS_PER_S * multiple), round(WRITES_PER_S * multiple)
        return replace(
            o,
            read_reqs_per_sec=reads or 0,
            write_reqs_per_sec=writes or 0,
            report_interval_sec=o.report_interval_sec or min(60.0, o.test_duration_sec),
        )

    def check(self) -> None:
        """Raise ConfigError for configurations that ACT would reject."""
        o = self.options
        if o.read_reqs_per_sec + o.write_reqs_per_sec == 0:
            raise ConfigError("the load has a rate of zero", hint="give --load 1x")
        large = o.large_block_op_kbytes
        if large & (large - 1):
            nearest = 1 << round(math.log2(large))
            raise ConfigError(
                f"large-block-op-kbytes must be a power of two, not {large}",
                hint=f"use the nearest power of two, {nearest}",
            )
        if max(o.record_bytes, o.record_bytes_range_max) > large * KIB:
            raise ConfigError(
                f"a record of {max(o.record_bytes, o.record_bytes_range_max)} B does not fit into "
                f"a large block of {large} KiB",
                hint="reduce record-bytes, or increase large-block-op-kbytes",
            )
        if o.read_req_num_512_blocks > 2 * large:
            raise ConfigError(
                f"read-req-num-512-blocks {o.read_req_num_512_blocks} exceeds the large block size",
                hint=f"large-block-op-kbytes is {large}, which is {2 * large} blocks of 512 B",
            )
        if 0 < o.record_bytes_range_max <= o.record_bytes:
            raise ConfigError(
                f"record-bytes-range-max is {o.record_bytes_range_max}; it must exceed "
                f"record-bytes ({o.record_bytes})"
            )
        if o.disable_odsync and o.commit_to_device:
            raise ConfigError(
                "disable-odsync and commit-to-device are mutually exclusive",
                hint="omit either option",
            )

    # -- load -------------------------------------------------------------------------------

    @property
    def multiple(self) -> float:
        """The load requested by the options, as a multiple of 1x."""
        o = self.options
        return max(o.read_reqs_per_sec / READS_PER_S, o.write_reqs_per_sec / WRITES_PER_S)

    def rates(self, multiple: float | None = None) -> Rates:
        """Return the rates at a given load, or at the load in the options if it is `None`."""
        return rates_of(self.options, 1.0 if multiple is None else multiple / self.multiple)

    @property
    def steps_a_slice(self) -> int:
        """Number of steps in a slice, at least 1."""
        return _whole(self.options.slice_sec / self.options.report_interval_sec)

    @property
    def steps_of_test(self) -> int:
        """Number of steps in the whole test, at least 1."""
        return _whole(self.options.test_duration_sec / self.options.report_interval_sec)

    def _step(
        self, identity: DeviceIdentity, phase: str, multiple: float, number: int, position: int
    ) -> Step:
        o = self.options
        rates = self.rates(multiple)
        seconds = o.report_interval_sec
        jobs = jobs_of(o, rates, sector_bytes=identity.sector_bytes, seconds=seconds)
        name = f"{multiple:g}x, to {number * seconds:g} s"
        # The load is stored as text, because a stored multiple might be read back as an int instead
        # of a float.
        step = self.step(name, Workload(name, jobs), phase, f"{multiple:g}", position)
        return replace(step, figures=lambda result: step_figures(result, jobs, multiple))

    def _compressible(self, load: Workload) -> Workload:
        """Return the load unchanged, because its jobs already have the `compress-pct` setting."""
        return load

    # -- results -------------------------------------------------------------------------

    def trials(self, rows: Sequence[StepRow], phase: str) -> list[Trial]:
        """Return the tests in a stage, in order."""
        wanted = self.steps_a_slice if phase == SEARCH else self.steps_of_test
        return [
            trial_of(load, part, steps_a_slice=self.steps_a_slice, steps_wanted=wanted)
            for load, part in split_by_load(rows)
        ]

    def over(self, trial: Trial, phase: str) -> bool:
        """Return `True` if the test at this load is over.

        In a search, the first failure stops a test; in the certification, only lag stops it early,
        as in ACT itself.
        """
        lag = self.options.max_lag_sec
        stopped = trial.failed(lag) if phase == SEARCH else trial.stopped(lag)
        return stopped or trial.complete

    def passed(self, trial: Trial) -> bool:
        """Return `True` if a test is complete and met every limit."""
        return trial.complete and not trial.failed(self.options.max_lag_sec)

    def next_load(self, rows: Sequence[StepRow], phase: str, first: float) -> float:
        """Return the load of the next step, or 0 when the stage is complete."""
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

    def certified_load(self, history: History) -> float:
        """Return the load to certify, which is the search result (0 if no load passed) or given."""
        stage = history.stages.get(SEARCH)
        if not self.options.search or stage is None:
            return self.multiple
        lag = self.options.max_lag_sec
        trials = self.trials(stage.rows, SEARCH)
        return max((item.multiple for item in trials if not item.failed(lag)), default=0.0)

    # -- stages and report entries ----------------------------------------------------------

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the search, if requested, and the certification."""
        names = (SEARCH, CERTIFY) if self.options.search else (CERTIFY,)
        return [self._stage(identity, name, first=name == names[0]) for name in names]

    def _stage(self, identity: DeviceIdentity, phase: str, *, first: bool) -> Stage:
        def steps(history: History, number: int) -> Sequence[Step]:
            stage = history.stages.get(phase)
            first_load = self.multiple if phase == SEARCH else self.certified_load(history)
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
            ends=(End(phase, "all requested loads tested", reached, per_round=True),),
            rounds_max=None if self.options.search else self.steps_of_test,
            purge=first,
            continuous=True,
            state=self.state(identity, self.options.state) if first else (),
        )

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (load, rates, threads, duration and search)."""
        o, rates = self.options, self.rates()
        threads = f"{o.num_queues} x {o.threads_per_queue}"
        return {
            **super().setup(identity),
            "precondition": RECIPES[o.state],
            "test: Load": f"{self.multiple:g}x, model {o.model}",
            "test: Reads": f"{rates.reads:g} per second, {rates.stored_bytes} B",
            "test: Large-block reads": f"{rates.large_reads:.2f} per second",
            "test: Large-block writes": f"{rates.large_writes:.2f} per second",
            "test: Large block": f"{o.large_block_op_kbytes} KiB",
            "test: Threads": threads if o.model == "3.x" else str(o.service_threads),
            "test: Duration": _duration(o.test_duration_sec),
            "test: Search": f"up to {o.search_max}x" if o.search else "no",
        }

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o, rates = self.options, self.rates()
        search = (
            f"search: tests of {o.slice_sec:g} s from {self.multiple:g}x on, by doubling and "
            f"bisection, up to {o.search_max}x",
        )
        return (
            "purge the drive",
            f"prepare: {RECIPES[o.state]}",
            *(search if o.search else ()),
            f"test {'the load that the search found' if o.search else f'{self.multiple:g}x'} for "
            f"{_duration(o.test_duration_sec)}: {rates.reads:g} reads of records, "
            f"{rates.large_reads:.2f} large-block reads and {rates.large_writes:.2f} large-block "
            f"writes per second{' at the first load' if o.search else ''}",
        )

    def warnings(self, history: History) -> Sequence[str]:
        """Report a test shorter than a slice, and tests stopped because of lag."""
        o = self.options
        texts = []
        if o.test_duration_sec < o.slice_sec:
            texts.append("the test was shorter than a slice, so it was judged as a single slice")
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
    """Return the number in a load such as "3x". Raises ConfigError for any other text."""
    match = LOAD.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"invalid load '{text}'", hint="write a load such as 1x, 3x or 12x")
    return float(match[1])
