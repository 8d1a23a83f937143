"""docker/versions.toml is the one place for versions: it is well formed, and whatever repeats a pin agrees with it."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ci.pins import __main__ as command
from ci.pins import cpu_torch, lock, repeats
from ci.pins.file import PATH, Pins
from triton_dist import env

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of all that has to do with pins."""
    listed = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if re.match(
            r"(docker|docs|ci|\.github|\.ci)/|[^/]+$|python/pyproject|python/triton_dist/runtime/torch_dev", name
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, tmp_path / name)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_everything_agrees_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--check"]) == 0, capsys.readouterr().out


def test_no_other_dependency_is_pinned() -> None:
    pins = Pins(CHECKOUT)
    pinned = {r.name for r in map(Requirement, lock.requirements(CHECKOUT, pins)) if "==" in str(r.specifier)}
    assert pinned <= set(pins.tables["python"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('llvm = "19.1.7"', 'llvm = "19.1"', r"toolchain\.llvm: '19\.1' does not match"),
        ("[sources]\n", "[sources]\nother = 5\n", r"sources\.other: 5 is not of type 'string'"),
        ('numpy = "1.26.4"', 'nunpy = "1.26.4"', r"'nunpy' was unexpected"),
        (
            'cann = "8.5.0"\ntorch =',
            'cann = "9.1.0"\ntorch =',
            r"no combination allows .* with cann 9\.1\.0",
        ),
        ('torch_npu = "2.7.1"', 'torch_npu = "2.9.0"', r"torch_npu 2\.9\.0 is not for torch 2\.7\.1"),
        ('chips = ["910b", "a3"]', 'chips = ["910b", "a9"]', r"names the chip a9"),
        ('sim-python = "3.11"', 'sim-python = "3.12"', r"images\.sim-python is 3\.12"),
    ],
)
def test_a_file_that_is_wrong(root: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str) -> None:
    change(root / PATH, old, new)
    assert command.main(["--check"], root) == 1
    assert re.search(said, capsys.readouterr().out)


@pytest.mark.parametrize("repeat", repeats.REPEATS, ids=lambda repeat: f"{repeat.pin} {repeat.pattern}")
def test_each_repetition_is_held_to_its_pin(root: Path, repeat: repeats.Repeat) -> None:
    for file in repeat.files:
        text = (root / file).read_text()
        match = re.search(repeat.pattern, text)
        assert match
        other = re.sub(r"[0-9](?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), match[1])
        (root / file).write_text(f"{text[: match.start(1)]}{other}{text[match.end(1) :]}")
        found = [each for each in repeats.disagreements(root, Pins(root)) if each.repeat is repeat]
        assert [(each.file, each.line) for each in found] == [(file, text.count("\n", 0, match.start(1)) + 1)]
        # Where it must stand, it may not go missing either.
        (root / file).write_text(re.sub(repeat.pattern, "", text))
        missing = [str(each) for each in repeats.disagreements(root, Pins(root)) if each.repeat is repeat]
        assert missing == [f"{file}: {repeat.pin} should be repeated here, as /{repeat.pattern}/"]
        (root / file).write_text(text)


@pytest.mark.parametrize("place", ["docs/testing.md", "docker/other/Dockerfile", ".github/workflows/test.yml"])
def test_a_version_in_a_new_place_is_found(root: Path, place: str) -> None:
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    with (root / place).open("a") as file:
        file.write("\npip install triton-ascend==3.1.0\n")
    assert [each.found for each in repeats.disagreements(root, Pins(root))] == ["3.1.0"]


@pytest.mark.parametrize(
    ("name", "version", "now"),
    [
        ("llvm", "20.2.1", {"build.md": "LLVM and MLIR 20.2,", PATH: 'llvm = "20.2.1"'}),
        (
            "python.supported",
            "3.10,3.11,3.12",
            {"ci/nox": "((3, 10), (3, 11), (3, 12))", "python/pyproject.toml": '">=3.10,<3.13"'},
        ),
    ],
)
def test_a_bump_changes_the_pin_and_what_repeats_it(root: Path, name: str, version: str, now: dict[str, str]) -> None:
    comments = [line for line in (root / PATH).read_text().splitlines() if line.startswith("#")]
    assert command.main(["--bump", name, version], root) == 0
    for file, text in now.items():
        assert text in (root / file).read_text()
    assert [line for line in (root / PATH).read_text().splitlines() if line.startswith("#")] == comments
    assert command.main(["--check"], root) == 0
    # And back: nothing else has changed.
    old = Pins(CHECKOUT).value(Pins(CHECKOUT).full_name(name))
    assert command.main(["--bump", name, old if isinstance(old, str) else ",".join(old)], root) == 0
    for file in now:
        assert (root / file).read_text() == (CHECKOUT / file).read_text()


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("torch", "2.14.0", "choose one of python.torch, ascend.torch"),
        ("tourch", "2.14.0", "names no pin"),
        ("cann", "1.0", "choose one of ascend.cann, images.cann"),
        ("llvm", "nineteen", "does not match"),
    ],
)
def test_a_bump_that_cannot_be(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, version: str, said: str
) -> None:
    before = (root / PATH).read_text()
    assert command.main(["--bump", name, version], root) == 1
    assert said in capsys.readouterr().err
    assert (root / PATH).read_text() == before


def test_locked_requirements_that_are_not_those_of_the_project(root: Path) -> None:
    change(root / "python" / "pyproject.toml", "pytest-xdist>=3.5", "pytest-xdist>=99")
    assert any("lock again" in fault for fault in lock.faults(root, Pins(root)))


def test_each_locked_requirement_has_hashes_and_torch_is_for_the_cpu() -> None:
    text = (CHECKOUT / lock.PATH).read_text()
    names = re.findall(r"^([A-Za-z][\w.-]*)==", text, re.MULTILINE)
    assert len(names) > 40
    assert len(re.findall(r"==[^\n]*\\\n    --hash=sha256:", text)) == len(names)
    assert not {name for name in names if name.startswith(("nvidia", "cuda")) or name in ("torch", "triton")}
    assert "://" not in text


def wheel(directory: Path, version: str, platform: str, *needs: str) -> None:
    """An empty wheel of torch."""
    stem = f"torch-{version}"
    with zipfile.ZipFile(directory / f"{stem}-cp311-cp311-{platform}.whl", "w") as archive:
        lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
        archive.writestr(
            f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n{lines}"
        )
        archive.writestr(f"{stem}.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: cp311-cp311-{platform}\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")


def test_a_cuda_build_of_torch_is_never_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "wheels"
    index.mkdir()
    monkeypatch.setenv(env.TRITON_DIST_TORCH_INDEX.name, str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    wheel(index, "1.99.0+cpu", "manylinux_2_28_x86_64", "sympy>=1.13", 'pyyaml ; extra == "pyyaml"')
    wheel(index, "1.99.0", "manylinux_2_28_aarch64", "sympy>=1.13", "nvidia-cudnn-cu13==9")
    (found,) = cpu_torch.builds("1.99.0", "3.11")
    assert (found.machine, found.needs) == ("x86_64", ("sympy>=1.13",))
