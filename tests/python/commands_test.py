"""What the command line does, as functions, on the emulated device."""

import json
import os
import pathlib
import signal
import threading

import pytest

import pascaline

PROBLEM = {"ROWS": 32, "COLUMNS": 48, "STORAGE": "float32"}


def test_version_is_that_of_the_program() -> None:
    assert pascaline.__version__.count(".") == 2


def test_devices_has_the_emulator() -> None:
    found = pascaline.devices()
    assert [device for device in found["devices"] if device["id"] == "emulator"]
    assert "sm_61" in found["compilers"]


def test_kernels_lists_all_and_shows_one() -> None:
    names = [kernel["kernel"] for kernel in pascaline.kernels()]
    assert "matmul" in names and names == sorted(names)
    assert [p["name"] for p in pascaline.kernels("transpose")["parameters"]][:2] == ["TILE", "BLOCK_THREADS"]


def test_a_sweep_stores_trials_and_a_winner(swept: pathlib.Path) -> None:
    winners = pascaline.winners(swept)
    assert len(winners) == 1 and winners[0]["problem"].startswith("transpose ")
    rows = pascaline.trials(swept, kernel="transpose", problem=PROBLEM)
    assert rows and all(row["status"] for row in rows)
    assert pascaline.show(swept) == winners and pascaline.show(swept, "trials", kernel="transpose") == rows
    assert len(pascaline.sessions(swept)) == 1
    assert pascaline.status(swept)["running"] == []


def test_what_is_known_is_not_measured_again(swept: pathlib.Path) -> None:
    with pytest.raises(pascaline.Error, match="every sweep has finished"):
        pascaline.resume(swept)


def test_explain_tells_of_the_winner(swept: pathlib.Path) -> None:
    (plan,) = pascaline.explain(PROBLEM, kernel="transpose", db=swept, device="emulator")
    assert plan["provenance"] == "exact" and plan["expected_us"] > 0
    (other,) = pascaline.explain("ROWS=5,COLUMNS=7", kernel="transpose", db=swept, device="emulator")
    assert other["provenance"] in ("nearest", "default")


def test_report_in_all_formats(swept: pathlib.Path, tmp_path: pathlib.Path) -> None:
    text = pascaline.report(swept)
    assert text is not None and "transpose" in text
    page = tmp_path / "report.html"
    assert pascaline.report(swept, page) is None
    assert page.read_text().startswith("<!DOCTYPE html>") or "<html" in page.read_text()
    document = pascaline.report(swept, format="json", limits=False)
    assert document is not None and json.loads(document)
    with pytest.raises(pascaline.Error, match="database in use"):
        pascaline.report(swept, swept, "md")
    with pytest.raises(pascaline.ArgumentError, match="contradicts file"):
        pascaline.report(swept, page, "md")


def test_ctrl_c_ends_a_sweep_after_the_trial_in_flight_and_nothing_is_printed(
        tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "interrupted.db"
    told = []

    def interrupt(event: dict[str, object]) -> None:
        if event["kind"] == "trial" and not told:
            told.append(event)
            os.kill(os.getpid(), signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        pascaline.sweep(PROBLEM, kernel="transpose", db=file, device="emulator", trials=500, jobs=1, preheat=0,
                        min_samples=3, max_samples=3, progress=interrupt)
    rows = pascaline.trials(file)
    assert 1 <= len(rows) < 500
    assert pascaline.status(file)["resume"]
    summary = pascaline.resume(file, trials=len(rows), finalists=1, rounds=2)
    assert not summary["interrupted"] and len(pascaline.winners(file)) == 1
    seen = capfd.readouterr()
    assert seen.out == "" and seen.err == ""


def test_what_progress_raises_ends_the_sweep(tmp_path: pathlib.Path) -> None:
    def fail(event: dict[str, object]) -> None:
        if event["kind"] == "trial":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        pascaline.sweep(PROBLEM, kernel="transpose", db=tmp_path / "x.db", device="emulator", trials=500, jobs=1,
                        preheat=0, progress=fail)


def test_errors_keep_what_libraries_say(tmp_path: pathlib.Path) -> None:
    space = tmp_path / "bad.json"
    space.write_text('{"schema": 1, "kernel": "bad"}')
    (tmp_path / "bad.cu").write_text("")
    with pytest.raises(pascaline.SpaceError) as caught:
        pascaline.kernels("bad", kernels=tmp_path, spaces=tmp_path)
    assert caught.value.file == str(space) and isinstance(caught.value, ValueError)
    (tmp_path / "no.db").write_text("not a database, but long enough to be looked at as one " * 20)
    with pytest.raises(pascaline.StoreError) as broken:
        pascaline.winners(tmp_path / "no.db")
    assert isinstance(broken.value.code, int)
