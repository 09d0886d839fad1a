"""What is published: the wheel and the sdist, installed outside the repository."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support import servers
from tests.support.command_line import finish

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel built from it."""
    out = tmp_path_factory.mktemp("dist")
    finish(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    return out


@pytest.fixture(scope="module")
def wheel(archives: Path) -> Path:
    (path,) = archives.glob("*.whl")
    return path


class Installation:
    """A virtual environment with the wheel; its dependencies are those of the test environment."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        venv.create(folder / "venv", with_pip=False)
        self._bin = folder / "venv" / "bin"
        pip = [sys.executable, "-m", "pip", "--python", str(self._bin / "python")]
        install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        subprocess.run([*pip, *install], check=True, timeout=600)
        # After the environment's own packages, and without the .pth file of the checkout.
        (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
        shared = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "dependencies.pth").write_text("\n".join(shared))

    def __call__(self, *command: str, code: int = 0) -> str:
        """The standard output of a command run in the home folder; its exit code must be `code`."""
        environment = {
            "PATH": f"{self._bin}:/usr/bin:/bin",
            "HOME": str(self.home),
            "MPLCONFIGDIR": str(self.home / ".matplotlib"),
            "COLUMNS": "80",
            "LANG": "C.UTF-8",
        }
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        program = self._bin / command[0]
        return finish(program, *command[1:], code=code, cwd=self.home, env=environment).stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("installed"), wheel)


@pytest.mark.slow
def test_the_wheel_installs_numbench_and_bittoken_with_their_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"numbench", "bittoken"}
    for data in (
        "numbench/_data/prompts/paper/questions.toml",
        "numbench/_data/prompts/german/system/sorting.txt",
        "numbench/_data/datasets/v1/manifest.json",
        "numbench/_data/datasets/paper/manifest.json",
        "numbench/_data/datasets/paper/published_labels.jsonl",
        "numbench/_data/datasets/paper/NOTICE",
        "numbench/_data/datasets/paper/scores.parquet",
        "bittoken/recipes/cpu.toml",
        "bittoken/checkpoints/small/config.json",
        "bittoken/checkpoints/small/model.safetensors",
    ):
        assert data in names
    (notice,) = (name for name in names if name.endswith("dist-info/licenses/NOTICE"))
    text = zipfile.ZipFile(wheel).read(notice).decode()
    assert "Copyright (c) 2026 Linus Kreitner" in text and "(c) 2023 Berri AI" in text
    (metadata,) = (name for name in names if name.endswith("dist-info/METADATA"))
    assert "License-Expression: MIT" in zipfile.ZipFile(wheel).read(metadata).decode()
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    folders = [name for name in names if name.startswith("numbench/") and not Path(name).suffix]
    assert not [name for name in folders if not name.endswith("/NOTICE")]


@pytest.mark.slow
def test_the_sdist_has_what_a_build_and_the_tests_need(archives: Path) -> None:
    (path,) = archives.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("pyproject.toml", "Makefile", "README.md", "LICENSE", "tests/conftest.py"):
        assert name in names
    assert "bench/numbench/py.typed" in names
    assert {str(path.relative_to(ROOT)) for path in ROOT.glob("results/*/README.md")} <= names


@pytest.mark.slow
def test_the_package_works_outside_the_repository(installed: Installation) -> None:
    home = installed.home
    code = "import numbench; print(numbench.__file__); print(numbench.__version__)"
    path, version = installed("python", "-c", code).split()
    assert "site-packages/numbench" in path and str(ROOT) not in path
    assert installed("numbench", "--version").strip() == f"numbench {version}"
    assert "gpt-5" in installed("numbench", "models")
    installed("numbench", "generate", "--name", "tiny", "--size", "4", "--seed", "7")
    for model in ("baseline/float32", "baseline/bfloat16"):
        installed("numbench", "run", "--model", model, "--dataset", "tiny")
    installed("numbench", "report")
    assert (home / "results" / "report" / "report.html").is_file()
    runs = sorted(str(path.parent) for path in (home / "results").rglob("run.json"))
    assert len(runs) == 2
    assert "What is" in installed("numbench", "show", runs[0], "--limit", "1")
    for name in ("tiny", "v1", "short", "paper"):
        lines = installed("numbench", "audit", name).splitlines()[1:]
        assert [line.split()[2] for line in lines if line.strip()] == ["0"] * 9
    installed("numbench", "export", "--to", "huggingface", "--out", "exported", "tiny")
    assert any((home / "exported").iterdir())
    tables = installed("numbench", "demo", "--dataset", "tiny")
    assert "float64 arithmetic" in tables and "numbench small" in tables
    assert (home / "results/demo/report/figures/radar.svg").stat().st_size > 10_000


@pytest.mark.heavy
def test_the_extra_inspect_is_usable_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """As its users install it: pip chooses the versions of all dependencies."""
    venv.create(tmp_path / "venv", with_pip=True)
    program = tmp_path / "venv" / "bin"
    install = ["install", "--quiet", "--disable-pip-version-check", f"{wheel}[inspect]"]
    subprocess.run([program / "pip", *install], check=True, timeout=900)
    with servers.serve(servers.plain) as server:
        environment = {"LOCAL_BASE_URL": server.url, "LOCAL_API_KEY": "x", "HOME": str(tmp_path)}
        task = ["numbench/v1", "-T", "tasks=addition", "-T", "limit=1", "--display", "plain"]
        environment["PATH"] = os.environ["PATH"]
        command = (program / "inspect", "eval", *task, "--model", "openai-api/local/x")
        finish(*command, cwd=tmp_path, env=environment)
        assert len(server.received) == 1
    done = finish(program / "numbench", "import", "logs", "--out", "runs", cwd=tmp_path)
    assert "runs: 1 run" in done.stdout


SCHEMAS = {
    "workflows/*.yml": "github-workflows",
    "dependabot.yml": "dependabot",
    "ISSUE_TEMPLATE/[!c]*.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/config.yml": "github-issue-config",
}


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "schema"), SCHEMAS.items())
def test_files_of_the_hosting_service_follow_its_schemas(pattern: str, schema: str) -> None:
    files = list((ROOT / ".github").glob(pattern))
    assert files
    program = Path(sys.executable).with_name("check-jsonschema")
    subprocess.run([program, "--builtin-schema", f"vendor.{schema}", *files], check=True)


@pytest.mark.slow
def test_the_image_is_built_and_runs_where_there_is_an_engine() -> None:
    program = Path(sys.executable).with_name("hadolint")
    subprocess.run([program, "--failure-threshold", "warning", ROOT / "Dockerfile"], check=True)
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker engine runs here: the Dockerfile was only linted")
    build = ["docker", "build", "--quiet", "--tag", "numbench-test", ROOT]
    subprocess.run(build, check=True, timeout=1200)
    command = ["docker", "run", "--rm", "numbench-test", "demo"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    assert "float64 arithmetic" in done.stdout
