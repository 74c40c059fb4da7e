"""Plans of suites and sweeps, and settings that they reject before the first run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bad_runs import unsteady_real_run
from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload
from writecliff.cli.cmd_suite import _estimates
from writecliff.devices import show_device
from writecliff.devices.edit import value_of
from writecliff.engines import target as target_module
from writecliff.errors import ConfigError, StoreError
from writecliff.procedures.estimate import with_estimate
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.workload import WorkloadRun
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import SUITE_NAME, Member, SuiteFolder
from writecliff.suite.memory import check_memory, member_memory_bytes
from writecliff.suite.plan import check_plans, plan_suite
from writecliff.suite.runner import _left
from writecliff.suite.sweep import OVERPROVISION, plan_sweep
from writecliff.workload.load import LoadStep, WorkloadFile


def test_a_suite_has_the_tests_of_the_standard_in_its_order() -> None:
    members = plan_suite("pts-e", "sim:x", common={"seed": 3})
    assert list(members) == ["iops", "tp", "lat", "wsat", "hir", "xsr", "ecw", "dirth"]
    assert all(member.test == name for name, member in members.items())
    whole = procedure_from_mapping("wsat", {"edition": "pts-e", "seed": 3}, simulated=True)
    assert members["wsat"].options == whole.options_mapping()
    common = {"edition": "pts-e", "seed": 3, "quick": False, "no_purge": False}
    assert plan_suite("pts-e", "sim:x", common=common) == plan_suite("pts-e", "sim:x",
                                                                   common={"seed": 3})  # fmt: skip


@pytest.mark.parametrize(
    ("target", "first"),
    [("sim:sata-tlc-120", ["ecw", "dirth", "hir"]), ("file:x", ["iops", "tp", "lat"])],
)
def test_side_by_side_the_longest_start_first(
    tmp_path: Path, target: str, first: list[str]
) -> None:
    """Check that sequential tests follow the standard's order."""
    members = plan_suite("pts-e", target)
    folder = SuiteFolder.create(tmp_path / "s", "suite", "pts-e", members)
    assert list(_left(folder))[:3] == first
    assert set(_left(folder)) == set(members)


def test_tests_keep_the_standard_s_order_however_they_are_named() -> None:
    members = plan_suite("pts-c", "sim:x", tests=["wsat", "iops"])
    ranges = ["100-8gib", "100-16gib", "75-8gib", "75-16gib"]
    assert list(members) == [f"{test}-{suffix}" for test in ("iops", "wsat") for suffix in ranges]


@pytest.mark.parametrize(
    ("edition", "arguments", "message", "hint"),
    [
        ("pts-d", {}, "unknown edition 'pts-d'", "did you mean 'pts-"),
        ("pts-e", {"tests": ["iopz"]}, "unknown test 'iopz'", "did you mean 'iops'"),
        ("pts-e", {"special": {"wsta": {}}}, "unknown test 'wsta'", "did you mean 'wsat'"),
        ("pts-e", {"tests": ["tp"], "special": {"wsat": {}}}, "not among the tests", ""),
        ("pts-e", {"tests": ["wsat"], "special": {"wsat": {"thread": 1}}}, "'thread'", "threads"),
        ("pts-e", {"common": {"revision": "3"}}, "unknown revision '3'", "1.x"),
    ],
)
def test_what_does_not_exist_is_refused(
    edition: str, arguments: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_suite(edition, "sim:x", **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_a_folder_comes_back_as_it_was_made(tmp_path: Path) -> None:
    members = plan_suite("pts-e", "sim:x", tests=["wsat"])
    made = SuiteFolder.create(tmp_path / "s", "suite", "pts-e", members)
    assert SuiteFolder.open(tmp_path / "s") == made
    assert (made.status("wsat"), made.complete(), made.simulated) == (None, (), True)
    with pytest.raises(ConfigError, match="not empty"):
        SuiteFolder.create(tmp_path / "s", "suite", "pts-e", members)


def test_a_real_drive_is_found_again_by_the_runs_that_were_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = plan_suite("pts-e", "/dev/sdx", tests=["wsat", "hir"])
    made = SuiteFolder.create(tmp_path / "s", "suite", "pts-e", members)
    begun = RunDirectory.open(unsteady_real_run(made.run_directory("wsat"))).manifest.device
    assert begun.target == "/dev/sdx"
    monkeypatch.setattr(
        target_module, "node_now", lambda drive: {begun.serial: "/dev/sdy"}[drive.serial]
    )
    assert [made.target_now(member.target) for member in members.values()] == ["/dev/sdy"] * 2
    assert made.target_now("/dev/sdz") == "/dev/sdz"  # No member ran on this drive.


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "writecliff/suite/9"}'])
def test_a_damaged_folder_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / SUITE_NAME).write_text(text)
    with pytest.raises(StoreError, match=r"suite\.json"):
        SuiteFolder.open(tmp_path)


def test_a_directory_without_a_suite_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a suite"):
        SuiteFolder.open(tmp_path)


def test_a_sweep_varies_one_option(tmp_path: Path) -> None:
    cells = [{"write_cache": True}, {"write_cache": False}, {"write_cache": True}]
    sweep = plan_sweep("wsat", "sim:x", cells, {"threads": 2}, folder=tmp_path)
    assert not sweep.devices
    on, off = ({"threads": 2, "write_cache": value} for value in (True, False))
    assert sweep.members == {
        "write-cache-on": Member("wsat", on, "sim:x", {"write_cache": "on"}),
        "write-cache-off": Member("wsat", off, "sim:x", {"write_cache": "off"}),
    }
    with pytest.raises(ConfigError, match="at least two"):
        plan_sweep("wsat", "sim:x", cells[::2], {}, folder=tmp_path)
    with pytest.raises(ConfigError, match="threads must be at least 1"):
        plan_sweep("wsat", "sim:x", [{"threads": 0}, {"threads": 1}], {}, folder=tmp_path)


def spare(*shares: float) -> list[dict[str, float]]:
    return [{OVERPROVISION: share} for share in shares]


def test_a_sweep_of_over_provisioning_makes_the_drives(tmp_path: Path) -> None:
    source = f"sim:{write_small_drive(tmp_path)}"
    sweep = plan_sweep("wsat", source, spare(20.0, 28.0), {}, folder=tmp_path)
    for percent, member in zip((20, 28), sweep.members.values(), strict=True):
        path = Path(member.target.removeprefix("sim:"))
        path.write_text(sweep.devices[path])
        device = show_device(str(path))
        share = 100 * (device.raw_bytes / device.capacity_bytes - 1)
        assert share == pytest.approx(percent, abs=0.2)
    with pytest.raises(ConfigError, match="cannot change"):
        plan_sweep("wsat", "/dev/x", spare(7.0, 28.0), {}, folder=tmp_path)


def test_a_drive_that_cannot_be_made_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    source = f"sim:{write_small_drive(tmp_path)}"
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="with 1 % over-provisioning"):
        plan_sweep("wsat", source, spare(28.0, 1.0), {}, folder=tmp_path / "new")
    with pytest.raises(ConfigError, match="sideways"):
        cells = [{"device.ftl.gc": word} for word in ("greedy", "sideways")]
        plan_sweep("wsat", source, cells, {}, folder=tmp_path / "new")
    assert sorted(tmp_path.iterdir()) == before


def test_a_grid_of_drives_and_options_has_each_drive_once(tmp_path: Path) -> None:
    source = f"sim:{write_small_drive(tmp_path)}"
    cells = [
        {"queue_depth": depth, "device.ftl.gc": gc, "device.flash.rated_cycles": cycles}
        for depth in (1, 8)
        # The values may be words or Python values.
        for gc, cycles in (("greedy", "1000"), ("fifo", 2000))
    ]
    sweep = plan_sweep("wsat", source, cells, {}, folder=tmp_path)
    assert list(sweep.members) == ["cell-001", "cell-002", "cell-003", "cell-004"]
    targets = [member.target for member in sweep.members.values()]
    assert targets[:2] == targets[2:] and len(sweep.devices) == 2
    texts = list(sweep.devices.values())
    for text, gc, cycles in zip(texts, ("greedy", "fifo"), (1000, 2000), strict=True):
        assert (value_of(text, "ftl.gc"), value_of(text, "flash.rated_cycles")) == (gc, cycles)
    assert [member.options["queue_depth"] for member in sweep.members.values()] == [1, 1, 8, 8]
    assert sweep.members["cell-004"].settings == {
        "queue_depth": "8", "device.ftl.gc": "fifo", "device.flash.rated_cycles": "2000",
    }  # fmt: skip


def test_a_sweep_varies_the_jobs_of_a_load(tmp_path: Path) -> None:
    jobs = (Job(name="log", pattern="sequential", ios=10), Job(name="data", ios=10))
    load = WorkloadFile(tmp_path / "x.toml", (LoadStep(Workload("x", jobs)),))
    identity = SimEngine(str(write_small_drive(tmp_path))).identify()
    common = WorkloadRun.of(load, identity, precondition="none").options_mapping()
    cells = [
        {"load.queue_depth": depth, "load.data.block_size": size, "load.log.think_ns": "2 ms"}
        for depth, size in (("1", "4 KiB"), ("32", "16 KiB"))
    ]
    sweep = plan_sweep("workload", "sim:x", cells, common, folder=tmp_path)
    for (depth, size), member in zip(((1, 4), (32, 16)), sweep.members.values(), strict=True):
        log, data = WorkloadRun.from_mapping(member.options).steps[0].workload.jobs
        assert (log.queue_depth, data.queue_depth) == (depth, depth)
        assert (log.block_sizes[0].bytes, data.block_sizes[0].bytes) == (4096, size << 10)
        assert (log.think_ns, data.think_ns) == (2_000_000, 0)
    for key, text, message in (
        ("load.qeue_depth", "1", "unknown field of a job 'qeue_depth'"),
        ("load.dota.queue_depth", "1", "unknown job 'dota'"),
        ("load.queue_depth", "many", "the field queue_depth of a job cannot be 'many'"),
        ("load.pattern", "zigzag", "the field pattern of a job cannot be 'zigzag'"),
    ):
        with pytest.raises(ConfigError, match=message):
            plan_sweep("workload", "sim:x", [{key: text}, {key: "x"}], common, folder=tmp_path)


def test_a_suite_that_does_not_suit_the_drive_is_refused(tmp_path: Path) -> None:
    identity = SimEngine(str(write_small_drive(tmp_path))).identify()
    check_plans(plan_suite("pts-e", "sim:small.toml", common={"quick": True}), identity)
    with pytest.raises(ConfigError, match=r"wsat-100-8gib: 8 GiB of segments do not fit .* 960 MB"):
        check_plans(plan_suite("pts-c", "sim:small.toml", common={"quick": True}), identity)


def test_a_sum_of_estimates_says_what_it_leaves_out(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    plans = {}
    for name, budget_s in (("lat", 1000.0), ("tp", 0.0)):
        procedure = procedure_from_mapping(name, {"quick": True}, simulated=True)
        plan = procedure.plan(engine.identify())
        plans[name] = with_estimate(plan, procedure, engine, budget_s=budget_s)
    _, lat, tp, total, *more = _estimates(plans).splitlines()
    assert lat.split()[1:] == total.split()[3:] and total.startswith("1 of 2 ")
    assert tp.split() == ["tp", *"-----"]
    assert more == ["no estimate: even the smallest pilot of tp takes too long"]
    _, lat, total = _estimates({"lat": plans["lat"]}).splitlines()
    assert lat.split()[1:] == total.split()[1:] and total.startswith("all ")


def test_runs_that_need_too_much_memory_are_refused_together() -> None:
    members = plan_suite("pts-e", "sim:pm863-960", tests=["ecw", "lat"])
    engine = SimEngine("pm863-960")
    need = member_memory_bytes(members["ecw"], engine)
    check_memory(members, engine, need)
    with pytest.raises(ConfigError) as refused:
        check_memory(members, engine, need - 1)
    assert "lat requires" in str(refused.value)
    assert "ecw requires" in str(refused.value)
    quick = plan_suite("pts-e", "sim:pm863-960", tests=["ecw", "lat"], common={"quick": True})
    assert member_memory_bytes(quick["ecw"], engine) < need / 2
    check_memory(quick, engine, need // 2)
