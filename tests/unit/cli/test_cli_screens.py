"""Help screens, usage errors and exit codes of the command line."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from cyclopts import App
from inline_snapshot import snapshot

from tests.support.cli import CommandLine
from writecliff.cli import commands as commands_module
from writecliff.cli.commands import LAB, MOVED, Command, build_app, commands, names_below
from writecliff.cli.examples import EXAMPLES
from writecliff.lab import commands as lab_module
from writecliff.lab.commands import lab_commands

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("cyclopts", "numpy", "pyarrow", "matplotlib", "duckdb", "rich", "writecliff._native")


def python(code: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )


def _below(app: App, words: tuple[str, ...]) -> Iterator[str]:
    yield " ".join(words)
    for name in names_below(app, words):
        yield from _below(app, (*words, name))


def test_every_command_has_examples_that_it_accepts() -> None:
    app = build_app()
    tops = [*(command.name for command in commands()), LAB[0]]
    assert sorted(EXAMPLES) == sorted(name for top in tops for name in _below(app, (top,)))
    for command, examples in EXAMPLES.items():
        for example in examples:
            arguments = [*command.split(), *shlex.split(example)]
            _, _, unused, *_ = app.parse_known_args(arguments)
            assert unused == [], arguments


def test_help_ends_with_examples(cli: CommandLine) -> None:
    screen = cli("test act --help").out
    assert screen.endswith(
        "\nExamples:\n  writecliff test act --on sim:sata-tlc-120 --load 6x\n"
        "  writecliff test act --on sim:sata-tlc-120 --search on\n"
    )


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from writecliff.cli.main import main\n"
        f"assert main({arguments!r}) == 0\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = python(code)
    assert done.stderr.strip() == "[]"
    assert done.stdout


def cpu_time_s(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    python(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_takes_little_more_than_the_start_of_python() -> None:
    """Check that start-up takes about 3.5 times the CPU time of an empty program."""
    codes = ("from writecliff.cli.main import main; main(['--help'])", "pass")
    rounds = [[cpu_time_s(code) for code in codes] for _ in range(10)]
    help_s, empty_s = map(min, zip(*rounds, strict=True))
    assert help_s / empty_s < 4.5


@pytest.mark.parametrize(
    ("module", "read", "above"),
    [(commands_module, commands, ()), (lab_module, lab_commands, ("lab",))],
)
def test_a_command_is_one_file(
    module: ModuleType, read: Callable[[], Sequence[Command]], above: tuple[str, ...]
) -> None:
    assert module.__file__ is not None
    files = {path.stem for path in Path(module.__file__).parent.glob("cmd_*.py")}
    assert {f"cmd_{command.name.replace('-', '_')}" for command in read()} == files
    app = build_app()
    for word in above:
        app = app[word]
    for command in read():
        name, _, attribute = command.target.partition(":")
        assert hasattr(import_module(name), attribute), command.name
        assert command.help[0].isupper() and command.help.endswith("."), command.name
        assert app[command.name] is not None


def test_module_runs(tmp_path: Path) -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run(
        [sys.executable, "-m", "writecliff", "nonsense"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown command 'nonsense'")


def test_root_screen(cli: CommandLine) -> None:
    completed = cli("--help")
    assert completed.err == ""
    assert completed.out == snapshot("""\
Usage: writecliff COMMAND

An SSD performance laboratory for SNIA tests on simulated and real drives.

Tests and suites:
  test            Run an SNIA PTS test or a published campaign.
  suite           Run all tests of an edition on a drive.
  report          Write the report of a run.
  compare         Compare runs, and test their differences for significance.
  sweep           Run a test or load once for each of several settings.
  choose          Choose a drive for a load by limits, weights and prices.
  demo            Show a write cliff on a simulated drive in a minute.
  runs            List, query, tag, compare, export and import runs.
  ui              Browse the runs in a store with a dashboard.

Workloads and traces:
  run             Run a workload (.fio or .toml) on a drive.
  fio             Run a fio command line on a simulated drive.
  profile         List and show ready-made workloads.
  capture         Trace the I/O of a command or of a block device.
  replay          Replay a trace on a drive.
  advise-streams  Find the best stream assignment for a trace.
  trace           Convert block traces, and synthesise workloads from them.
  characterise    Characterise the workload in a block trace.

Drives:
  device          Show, export and create simulated drives; probe real drives.
  twin            Create a twin of a drive, or check a drive against a twin.
  serve           Serve a simulated drive to other programs.
  attach          Attach or detach a drive served over NVMe/TCP.
  doctor          Check for missing tools and show how to install them.

Drives: sim:NAME and sim:PATH.toml are simulated; file:PATH and /dev/NAME are
tested with fio, which destroys their data (see --destroy). Name the
drive with --on, or as the first argument.
Exit codes: 0 success, 1 failure, 2 invalid usage, file or target, 3 an --expect
limit not met or figures worse than the --baseline, 130 interrupted.
Every command accepts --help, --json (print data as JSON on stdout and errors as
JSON on stderr) and --debug (full traceback). NO_COLOR is honoured.
`writecliff --version` prints the version; `writecliff lab` runs research tools.
""")


def test_root_screen_fits_a_terminal(cli: CommandLine) -> None:
    lines = cli("--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40
    assert sum(command.shown for command in commands()) <= 22


@pytest.mark.parametrize("name", MOVED)
def test_a_name_of_0_1_runs_the_command_and_prints_its_present_name(
    cli: CommandLine, name: str
) -> None:
    present = " ".join(MOVED[name])
    old, new = cli(f"{name} --help"), cli(f"{present} --help")
    assert (old.code, old.out) == (new.code, new.out) and new.code == 0
    assert old.err == f"hint: `writecliff {name}` is now `writecliff {present}`\n"
    assert cli(f"{name} --no-such --json").err.startswith('{"error": ')


def test_test_screen(cli: CommandLine) -> None:
    assert cli("test --help").out == snapshot("""\
Usage: writecliff test COMMAND [OPTIONS]

Run an SNIA PTS test or a published campaign on a drive.

Commands:
  iops           IOPS Test: random I/O at 8 block sizes and 7 read/write mixes until steady state.
  tp             Throughput Test: sequential 1024 and 128 KiB reads and writes until steady state.
  lat            Latency Test: response times of random 8, 4 and 0.5 KiB I/Os with one outstanding I/O, until steady state.
  wsat           Write Saturation Test: random 4 KiB writes to a purged drive until its performance levels off.
  hir            Host Idle Recovery Test: bursts of random 4 KiB writes with increasingly long pauses between bursts, starting in steady state.
  xsr            Cross Stimulus Recovery Test: 22 hours of sequential, random and again sequential writes.
  ecw            Enterprise Composite Workload Test: a mix of block sizes over address zones (CBW), at each thread count and queue depth.
  dirth          Demand Intensity / Response Time Histogram Test: response times and IOPS of a workload at each thread count and queue depth.
  datacentre     Data-centre White Paper Tests: basic performance, read/write mixes, consistency, messenger and server loads, in a sustained state.
  consistency    Performance Consistency Test: random 4 KiB writes to the whole drive, then to part of the drive, sampled every second.
  act            Aerospike Certification Test: fixed-rate reads during large-block reads and writes, with a pass or fail result for each hour.
  blocksizes     Block Size Comparison: steady-state IOPS, latency and power by block size and read/write mix.
  endurance      Endurance Test: steady-state write amplification of a workload, and the resulting TBW, DWPD and lifetime.
  ssd-iq         Skew and Open-Loop Test: Zipfian, static and zoned writes compared with uniform writes, and tail latency under open-loop load.
  replay-native  Replay-Native Test: replay of an I/O capture in time steps that each have their own streams and queue depth.
  multi-wsat     Multi-WSAT Test: all streams of an I/O capture's applied workload together, on a purged drive.
  is-wsat        Individual Streams-WSAT Test: each stream of the applied workload alone, on a preconditioned drive.
  tcqd           Thread Count / Queue Depth Sweep Test: the applied workload of an I/O capture at each thread count and queue depth.

Options:
  --list
      List the tests.

Output:
  --json
      Print the result as JSON (see docs/reference/json-commands.md).

Examples:
  writecliff test wsat --on sim:sata-tlc-120 --quick
  writecliff test wsat --on /dev/sdX --destroy SERIAL
""")


def wsat_screen(cli: CommandLine) -> tuple[str, str]:
    """Check that the help has two sections: common options, and the options of the test."""
    options, mark, shared = cli("test wsat --help").out.partition("Drive:\n")
    return mark + shared, options


def test_shared_options_of_a_test(cli: CommandLine) -> None:
    assert wsat_screen(cli)[0] == snapshot("""\
Drive:
  --on DEVICE
      Target drive: sim:NAME, sim:PATH.toml, file:PATH or /dev/NAME.
  --destroy SERIAL
      Serial number of a /dev/ target, which confirms that the drive's data may be
      destroyed.
  --wipe-signatures
      Allow the test to overwrite partition tables and file systems on a /dev/ target.
  --power-state N
      Power state of an NVMe drive, or of a simulated drive that has power states,
      during the test. After the test, a real drive returns to its previous power state.
  --size SIZE
      Size of the test file to create for a file: target, such as 10GB or 8GiB.

Output:
  --baseline PATH
      Baseline run, suite or saved JSON output to compare the run with. The command
      prints the verdict. The exit code is 3 if a figure is significantly worse than in
      the baseline.
  --expect LIMIT...
      Limit on a headline figure, such as "iops >= 100000"; may be repeated. In suites
      and sweeps, a limit applies to every run that reports the figure; "TEST.iops >=
      100000" applies only to runs of TEST. The exit code is 3 if a limit is not met.
  --junit PATH
      Write the results of --expect and --baseline to this file as JUnit XML.
  --store STORE
      Run store for new runs (default: the store in WRITECLIFF_STORE, else the current
      folder).
  --output PATH
      Run directory, which must be empty or not exist (default: runs/NAME-TARGET-TIME).
  --resume PATH
      Resume the unfinished run in this directory with the run's original options.
  --dry-run
      Show the plan and its write volume, but do not access the drive. The exit code is
      2 if the command would be rejected.
  --quiet
      Suppress progress output on stderr.
  --json
      Print the result as JSON (see docs/reference/json-commands.md).

Advanced:
  --nand-type NAME
      Flash type of a real drive, to show in the report header. Drives do not report
      their flash type.
  --form-factor NAME
      Form factor of a real drive, to show in the report header.
  --sponsor NAME
      Test sponsor to show in the report header.
  --note REMARK
      Remark to show in the report header.
  --attribute-latency
      Record the causes of I/O latency at each percentile (simulated SSDs only).
      Recording slows down the simulation.

Examples:
  writecliff test wsat --on sim:sata-tlc-120 --quick
  writecliff test wsat --on /dev/sdX --destroy SERIAL
""")


def test_wsat_screen(cli: CommandLine) -> None:
    assert wsat_screen(cli)[1] == snapshot("""\
Usage: writecliff test wsat [OPTIONS]

Write Saturation Test: random 4 KiB writes to a purged drive until its performance
levels off.

Options:
  --ar-amount-gib GIB
      Volume of data that the test accesses in the active range, in GiB, spread over
      segments (default: the whole active range).
  --ar-segments N
      Number of active-range segments if --ar-amount-gib is given (default: 2048).
  --edition pts-e|pts-c
      PTS edition: enterprise or client (default: pts-e).
  --revision 1.x|2.0
      PTS revision (default: 1.x).
  --quick
      Run a shortened test that cannot reach steady state, and stamp the report. On
      simulated drives, PTS tests run at full length on a drive of reduced capacity
      instead.
  --no-purge
      Skip the purge, and stamp the report. Use this option for a real drive that was
      purged by other means (behind USB, RAID or virtio, or with the vendor's tool).
  --write-cache on|off
      State of the volatile write cache (pts-e: off, pts-c: on).
  --active-range-pct PERCENT
      Active range: percentage of the drive's addresses that the test accesses
      (standard: 100; pts-c 2.0: 75).
  --compressible-pct PERCENT
      Compressibility of the data in percent, where 0 means random data (standard: 0).
  --duplicate-pct PERCENT
      Percentage of written 4 KiB pages that are duplicates of another page (standard:
      0).
  --data-file PATH
      File that contains the data pattern. The measured compressibility and percentage
      of duplicates of the pattern apply unless other options set these values (default:
      random).
  --seed SEED
      Seed for all random choices (default: 1).
  --threads N
      Number of threads that issue I/O (TC) (pts-e: 4, pts-c: 2).
  --queue-depth N
      Number of outstanding I/Os per thread (QD) (pts-e: 32, pts-c: 16).
  --end CONDITIONS
      Stop conditions, of which the first to be met stops the test; a list of
      steady,capacity,time (default: steady,time).
  --sample-seconds SECONDS
      Duration of each step, in seconds (standard: 60).
  --round-minutes MINUTES
      Interval between samples, in minutes (standard: 31).
  --time-hours HOURS
      With `--end time`, stop after this many hours of device time (1.x: 24, 2.0: 6).
  --drive-fills FILLS
      With `--end capacity`, stop after writing this many user capacities (standard: 4).
  --fresh-fills FILLS
      Write volume before the first steady-state window, in multiples of the user
      capacity, because the constant speed of a fresh drive could be mistaken for steady
      state (default: 2).
  --max-rounds N
      Maximum number of rounds if 'steady' is the only stop condition (standard: 25).
  --histogram on|off
      Finish with a 20-minute response-time histogram (2.0: on).
  --histogram-seconds SECONDS
      Duration of the histogram step, in seconds (standard: 1200).
  --stimulus rnd-4k-w|rnd-8k-65|seq-128k-90|seq-0.5k-50|composite
      Workload to run; all workloads except rnd-4k-w are optional in revision 2.0 (1.x:
      rnd-4k-w).

""")


def test_test_list(cli: CommandLine) -> None:
    assert cli("test --list").out == snapshot("""\
test           title                                            source                      what it does
iops           IOPS Test                                        pts-e, pts-c                random I/O at 8 block sizes and 7 read/write mixes until steady state
tp             Throughput Test                                  pts-e, pts-c                sequential 1024 and 128 KiB reads and writes until steady state
lat            Latency Test                                     pts-e, pts-c                response times of random 8, 4 and 0.5 KiB I/Os with one outstanding I/O, until steady state
wsat           Write Saturation Test                            pts-e, pts-c                random 4 KiB writes to a purged drive until its performance levels off
hir            Host Idle Recovery Test                          pts-e                       bursts of random 4 KiB writes with increasingly long pauses between bursts, starting in steady state
xsr            Cross Stimulus Recovery Test                     pts-e                       22 hours of sequential, random and again sequential writes
ecw            Enterprise Composite Workload Test               pts-e                       a mix of block sizes over address zones (CBW), at each thread count and queue depth
dirth          Demand Intensity / Response Time Histogram Test  pts-e                       response times and IOPS of a workload at each thread count and queue depth
datacentre     Data-centre White Paper Tests                    PM863 white paper (2015)    basic performance, read/write mixes, consistency, messenger and server loads, in a sustained state
consistency    Performance Consistency Test                     AnandTech (2012-2014)       random 4 KiB writes to the whole drive, then to part of the drive, sampled every second
act            Aerospike Certification Test                     Aerospike ACT               fixed-rate reads during large-block reads and writes, with a pass or fail result for each hour
blocksizes     Block Size Comparison                            Samsung 840 v 850 (2014)    steady-state IOPS, latency and power by block size and read/write mix
endurance      Endurance Test                                   JESD218 and JESD219         steady-state write amplification of a workload, and the resulting TBW, DWPD and lifetime
ssd-iq         Skew and Open-Loop Test                          SSD-iq (2025)               Zipfian, static and zoned writes compared with uniform writes, and tail latency under open-loop load
replay-native  Replay-Native Test                               SNIA RWSW PTS 1.0.7 (2018)  replay of an I/O capture in time steps that each have their own streams and queue depth
multi-wsat     Multi-WSAT Test                                  SNIA RWSW PTS 1.0.7 (2018)  all streams of an I/O capture's applied workload together, on a purged drive
is-wsat        Individual Streams-WSAT Test                     SNIA RWSW PTS 1.0.7 (2018)  each stream of the applied workload alone, on a preconditioned drive
tcqd           Thread Count / Queue Depth Sweep Test            SNIA RWSW PTS 1.0.7 (2018)  the applied workload of an I/O capture at each thread count and queue depth
""")
    listed = json.loads(cli("test --list --json").out)
    names = ["iops", "tp", "lat", "wsat", "hir", "xsr", "ecw", "dirth"]
    assert [e["name"] for e in listed["tests"] if not e["campaign"]] == names


USAGE_ERRORS = {
    "tset": snapshot("""\
error: unknown command 'tset' for `writecliff`
hint: did you mean 'test'?
"""),
    "frobnicate": snapshot("""\
error: unknown command 'frobnicate' for `writecliff`
hint: commands: test, suite, report, compare, sweep, choose, demo, runs, ui, run, fio, profile, capture, replay, advise-streams, trace, characterise, device, twin, serve, attach, doctor, lab
"""),
    "test wast": snapshot("""\
error: unknown command 'wast' for `writecliff test`
hint: did you mean 'wsat'?
"""),
    "test wsat --edtion pts-c": snapshot("""\
error: unknown option '--edtion' for `writecliff test wsat`
hint: did you mean '--edition'?
"""),
    "test wsat --on": snapshot("""\
error: --on requires a value
hint: see `writecliff test wsat --help`
"""),
    "test wsat": snapshot("""\
error: no target was specified
hint: add --on, for example --on sim:sata-tlc-120
"""),
    "test wsat --edition pts-x --on sim:fake": snapshot("""\
error: invalid value 'pts-x' for --edition
hint: did you mean 'pts-e'?
"""),
    "test wsat --time-hours soon --on sim:fake": snapshot("""\
error: invalid value 'soon' for --time-hours: the option requires a number
hint: see `writecliff test wsat --help`
"""),
    "test wsat --on sim:fake --end never": snapshot("""\
error: unknown end 'never'
hint: known: steady, capacity, time
"""),
    "test wsat --on sim:fake --end ,": snapshot("""\
error: --end is empty
hint: specify a list, such as steady, capacity, time
"""),
    "test wsat --on sim:nothing": snapshot("""\
error: no simulated drive 'sim:nothing'
hint: see `writecliff device list`
"""),
    "test wsat --on file:image --size 10G": snapshot("""\
error: invalid size '10G'
hint: 'G' is ambiguous (a power of 1000 or 1024): write "10 GB" or "10 GiB"
"""),
    "test wsat --resume nowhere": snapshot("""\
error: nowhere is not a run directory: it does not contain manifest.json
hint: specify the directory that `writecliff test` printed
"""),
    "run": snapshot("""\
error: missing argument FILE for `writecliff run`
hint: see `writecliff run --help`
"""),
    "run a.fio b.fio --on sim:fake": snapshot("""\
error: unexpected argument 'b.fio' for `writecliff run`
hint: see `writecliff run --help`
"""),
    "run a.txt --on sim:fake": snapshot("""\
error: a.txt is neither a fio job file nor a workload file
hint: rename the file to .fio or .toml, depending on its format
"""),
    "run nowhere.fio --on sim:fake": snapshot(
        "error: cannot read nowhere.fio: no such file or directory\n"
    ),
}


@pytest.mark.parametrize("words", USAGE_ERRORS)
def test_usage_errors(
    cli: CommandLine, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    completed = cli(words)
    assert completed.code == 2
    assert completed.out == ""
    assert completed.err == USAGE_ERRORS[words]
    assert not any(tmp_path.iterdir())


def test_errors_as_json(cli: CommandLine) -> None:
    completed = cli("test wsat --edtion pts-c --json")
    assert completed.code == 2
    assert json.loads(completed.err) == snapshot(
        {
            "error": {
                "message": "unknown option '--edtion' for `writecliff test wsat`",
                "hint": "did you mean '--edition'?",
                "exit_code": 2,
            }
        }
    )


def test_unexpected_errors_leave_a_traceback_file(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def explode(self: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tests.support.fake_engine.FakeEngine.identify", explode)
    completed = cli("test wsat --on sim:fake --dry-run")
    assert completed.code == 1
    (file,) = tmp_path.glob("writecliff-*.traceback")
    assert completed.err == (
        "error: internal error: ZeroDivisionError: two lines\n"
        f"hint: this is a bug in writecliff; please report it with {file}\n"
    )
    assert "ZeroDivisionError" in file.read_text()
    debug = cli("test wsat --on sim:fake --dry-run --debug")
    assert debug.code == 1
    assert debug.err.startswith("Traceback")


def test_broken_pipe_is_quiet() -> None:
    code = "from writecliff.cli.main import main; import sys; sys.exit(main(['--help']))"
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (0, b"")


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        ("capture", "exit code is the traced command's exit code"),
        ("compare", "A suite counts as one"),
        ("lab validate streams", "persistent isolation pays off"),
    ],
)
def test_the_help_of_a_command_explains_more_than_its_line_on_the_root_screen(
    cli: CommandLine, command: str, detail: str
) -> None:
    assert detail in " ".join(cli(f"{command} --help").out.split())


@pytest.mark.parametrize(
    "command",
    [*(c.name for c in commands()), *(f"lab {c.name}" for c in lab_commands())],
)
def test_no_help_shows_a_default_twice_or_an_empty_one(cli: CommandLine, command: str) -> None:
    shown = " ".join(cli(f"{command} --help").out.split())
    for option in shown.split(" --")[1:]:
        assert option.count("(default: ") <= 1, option
        assert not re.search(r"\(default: (\(\)|True|None|)\)", option), option
