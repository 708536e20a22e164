"""Data is prepared once, whole or not at all, and anew when what it is made of changes."""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from mlagentbench.data.extras import require_extras
from mlagentbench.data.inventory import entries
from mlagentbench.data.prepare import prepare, prepared
from mlagentbench.data.sources import sources
from mlagentbench.errors import TaskError
from mlagentbench.task.catalogue import Task, find_task, load_task
from mlagentbench.task.seeds import SEED
from tests.mirror import Cut, Mirror, Slow
from tests.support import HANGING
from tests.tasks.tiny import DATA, PREPARE, URL, make_task


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task with data."""
    return make_task(tmp_path)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where it goes."""
    return tmp_path / "cache"


def calls(tmp_path: Path) -> int:
    """How often mini data was made."""
    return len((tmp_path / "calls.txt").read_text().splitlines())


def work(folder: Path, cache: Path) -> None:
    prepared(load_task(folder), "mini", cache)


def test_data_is_split_into_what_the_agent_sees_and_what_it_does_not(task: Task, cache: Path) -> None:
    public, private = prepared(task, "mini", cache)
    assert (public / "train.csv").read_text() == f"seed {SEED}"
    assert (private / "answers.csv").read_text() == "42"
    assert not (public / "answers.csv").exists()


def test_what_was_made_is_recorded_beside_it(task: Task, cache: Path) -> None:
    made = prepare(task, "mini", cache)
    assert made.made and made.place is not None and made.record is not None
    told = json.loads((made.place / "prepared.json").read_text())
    seeded = f"seed {SEED}".encode()
    assert (told["task"], told["variant"], told["seed"]) == ("tiny", "mini", SEED)
    assert told["public"] == {"train.csv": {"size": len(seeded), "sha256": hashlib.sha256(seeded).hexdigest()}}
    assert set(told["private"]) == {"answers.csv"}
    assert {"python", "numpy"} <= set(told["versions"])
    assert made.place.name == f"mini-{told['key']}"
    again = prepare(task, "mini", cache)
    assert not again.made
    assert again == made._replace(made=False)


def test_processes_that_prepare_at_once_prepare_once(task: Task, cache: Path, tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=work, args=(task.folder, cache)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(HANGING)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert calls(tmp_path) == 1


def test_a_preparation_that_fails_leaves_nothing_behind_and_is_one_line(tmp_path: Path, cache: Path) -> None:
    task = make_task(tmp_path, PREPARE.replace('"42")', "\"42\")\n    raise RuntimeError('torn')"))
    with pytest.raises(TaskError, match=r"tiny cannot be prepared: prepare.py raised RuntimeError: torn"):
        prepared(task, "mini", cache)
    assert list((cache / "prepared" / "tiny").iterdir()) == []


def test_a_preparation_that_was_killed_is_cleaned_up_and_made_whole(tmp_path: Path, cache: Path) -> None:
    task = make_task(tmp_path, PREPARE.replace("time.sleep(0.3)", "time.sleep(600)"))
    process = multiprocessing.get_context("spawn").Process(target=work, args=(task.folder, cache))
    process.start()
    while not list(cache.rglob("train.csv")):
        assert process.is_alive()
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(HANGING)
    assert list(cache.rglob("train.csv")), "what it left is still there"
    make_task(tmp_path)  # the same, and quicker
    made = prepare(task, "mini", cache)
    assert [path.name for path in (cache / "prepared" / "tiny").iterdir()] == [made.place and made.place.name]
    assert made.data.private and (made.data.private / "answers.csv").read_text() == "42"


def test_a_download_that_was_killed_while_it_was_prepared_is_gone_on_with(mirror: Mirror, tmp_path: Path, cache: Path) -> None:
    content = bytes(range(256)) * 1000
    task = make_task(tmp_path, more=DATA)
    mirror.add(URL, content)
    mirror.fail(URL, Cut(1000), Slow(1000, 600))
    code = "import sys; from pathlib import Path; from mlagentbench.task.catalogue import load_task; "
    code += "from mlagentbench.data.prepare import prepared; prepared(load_task(Path(sys.argv[1])), 'full', Path(sys.argv[2]))"
    process = subprocess.Popen([sys.executable, "-c", code, str(task.folder), str(cache)])
    while len(mirror.requests) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait(HANGING)
    mirror.faults.clear()
    public, _ = prepared(task, "full", cache)
    assert public and (public / "train.csv").read_bytes() == content
    assert mirror.requests[-1].range in ("bytes=1000-", "bytes=2000-")


@pytest.mark.parametrize("file", ["prepare.py", "words.py", "deep.py", "words.txt", "pictures/0.png"])
def test_data_is_made_anew_when_what_it_is_made_of_changes(tmp_path: Path, cache: Path, file: str) -> None:
    task = make_task(
        tmp_path, PREPARE.replace("import os, time", "import os, sys, time\nsys.path.insert(0, os.path.dirname(__file__))\nimport words")
    )
    (task.folder / "pictures").mkdir()
    texts = {"words.py": "import deep\n", "deep.py": "", "words.txt": "a", "pictures/0.png": "p"}
    for name, text in texts.items():
        (task.folder / name).write_text(text)
    before = prepare(task, "mini", cache)
    assert not prepare(task, "mini", cache).made
    with (task.folder / file).open("a") as changed:
        changed.write("\n# changed\n")
    after = prepare(task, "mini", cache)
    assert after.made
    assert before.place and before.place.exists(), "runs that go on keep theirs"
    assert after.place != before.place


def test_a_run_goes_on_with_the_data_it_began_on_or_not_at_all(task: Task, cache: Path) -> None:
    began = prepare(task, "mini", cache)
    assert began.record and began.place
    assert prepare(task, "mini", cache, key=began.record.key).data == began.data
    with (task.folder / "prepare.py").open("a") as changed:
        changed.write("\n# changed\n")
    assert prepare(task, "mini", cache, key=began.record.key).data == began.data
    shutil.rmtree(began.place)
    with pytest.raises(TaskError, match=rf"the data of {task.id} has changed since the run began.*: bring back either, or begin a new run"):
        prepare(task, "mini", cache, key=began.record.key)


SECRET = """
def full(public, private, seed):
    (public / "train.csv").write_text("x")
    (private / "answers.csv").write_text(f"{seed}")
"""


def test_made_up_answers_are_drawn_from_a_secret_that_each_preparation_draws(task: Task, cache: Path) -> None:
    (task.folder / "prepare.py").write_text(SECRET)
    began = prepare(task, "full", cache)
    assert began.record and began.record.seed and began.record.seed > 2**40
    assert (began.data.private / "answers.csv").read_text() == f"{began.record.seed}"
    assert prepare(task, "full", cache, key=began.record.key, digest=began.record.digest).record == began.record
    again = prepare(task, "full", cache, force=True)
    assert again.record and again.record.seed != began.record.seed and again.record.digest != began.record.digest
    assert again.record.key == began.record.key
    with pytest.raises(TaskError, match=rf"the data of {task.id} in .* is not what the run began with, since it was prepared anew"):
        prepare(task, "full", cache, key=began.record.key, digest=began.record.digest)


LINKS = f"""
import os
from mlagentbench import fetch

def full(public, private):
    file = fetch.download({URL!r})
    os.link(file, public / "train.csv")
    (public / "copy.csv").write_bytes(file.read_bytes())
    (private / "answers.csv").write_text("42")
"""


def test_links_to_downloads_are_recorded_without_reading_them_again(task: Task, cache: Path, mirror: Mirror) -> None:
    content = random.Random(0).randbytes(1000)
    mirror.add(URL, content)
    (task.folder / "prepare.py").write_text(LINKS)
    for force in (False, True):
        found = prepare(task, "full", cache, force=force)
        assert found.record
        assert found.record.public["train.csv"] == found.record.public["copy.csv"]
        assert found.record.public["train.csv"].sha256 == hashlib.sha256(content).hexdigest()
    (download,) = (
        path for path in (cache / "downloads").rglob("*") if path.is_file() and os.path.samefile(path, found.data.public / "train.csv")
    )
    checked = download.stat()
    download.write_bytes(b"x" * len(content))
    os.utime(download, ns=(checked.st_atime_ns, checked.st_mtime_ns))
    again = prepare(task, "full", cache, force=True)
    assert again.record and again.record.public["train.csv"].sha256 == hashlib.sha256(content).hexdigest(), "it was read again"


@pytest.mark.parametrize("file", ["problem.md", "grade.py", "proof.py", "starter/train.py", "task.toml", "__pycache__/x.pyc", ".hidden"])
def test_what_only_grades_or_describes_makes_nothing_anew(task: Task, cache: Path, file: str) -> None:
    prepared(task, "mini", cache)
    (task.folder / file).parent.mkdir(exist_ok=True)
    with (task.folder / file).open("a") as changed:
        changed.write("\n# changed\n")
    assert not prepare(load_task(task.folder), "mini", cache).made


def test_published_checksums_are_part_of_the_real_data(mirror: Mirror, tmp_path: Path, cache: Path) -> None:
    mirror.add(URL, b"a,b\n")
    prepared(make_task(tmp_path, more=DATA), "full", cache)
    checksum = hashlib.sha256(b"a,b\n").hexdigest()
    with_checksum = make_task(tmp_path, more=f'{DATA}[data.checksums]\n"train.csv" = "sha256:{checksum}"\n')
    assert prepare(with_checksum, "full", cache).made
    wrong = make_task(tmp_path, more=f'{DATA}[data.checksums]\n"train.csv" = "sha256:{"0" * 64}"\n')
    with pytest.raises(TaskError, match="not the file it should be"):
        prepare(wrong, "full", cache)


def test_imports_are_followed_into_other_tasks_and_not_into_machinery() -> None:
    names = {path.name for path in sources(find_task("cifar100"))}
    assert "prepare.py" in names
    assert not names & {"grade.py", "proof.py", "fetch.py", "tables.py", "problem.md", "task.toml", "train.py"}
    assert any(path.parent.name == "cifar10" for path in sources(find_task("cifar100")))


def test_force_makes_it_anew(task: Task, cache: Path, tmp_path: Path) -> None:
    place = prepare(task, "mini", cache).place
    assert place is not None
    (place / "public" / "train.csv").write_text("damaged")
    again = prepare(task, "mini", cache, force=True)
    assert again.made and again.place == place
    assert (place / "public" / "train.csv").read_text() == f"seed {SEED}"
    assert calls(tmp_path) == 2
    assert [path.name for path in place.parent.iterdir()] == [place.name]


CATS_FIRST = """
import os

def mini(public, private, seed):
    (public / "pictures").mkdir()
    for each, name in enumerate("7294018365"):
        (public / "pictures" / f"{name}.png").write_bytes(b"cat" if each < 5 else b"dog")
        os.chmod(public / "pictures" / f"{name}.png", 0o600 if each < 5 else 0o640)
        folder = public / "records" / name
        folder.mkdir(parents=True)
        (folder / "band.npy").write_bytes(bytes(each))
    (private / "answers.csv").write_text("42")
"""


def test_metadata_tells_nothing_of_what_is_in_a_file(tmp_path: Path, cache: Path) -> None:
    public, private = prepared(make_task(tmp_path, CATS_FIRST), "mini", cache)
    paths = [public, private, *public.rglob("*"), *private.rglob("*")]
    assert {path.stat().st_mtime_ns for path in paths} == {946_684_800 * 10**9}
    assert {path.stat().st_atime_ns for path in paths if path.is_file()} == {946_684_800 * 10**9}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()} == {0o644}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()} == {0o755}
    for folder in (public / "pictures", public / "records"):
        names = sorted(folder.iterdir())
        assert sorted(names, key=lambda path: path.stat().st_ctime_ns) == names
    made = sorted((public / "pictures").iterdir(), key=lambda path: path.stat().st_ino)
    assert [path.stem for path in made] != list("7294018365"), "the order in which they were made"
    assert (public / "pictures" / "7.png").read_bytes() == b"cat"
    assert (public / "records" / "5" / "band.npy").read_bytes() == bytes(9)
    assert {path.name for path in public.iterdir()} == {"pictures", "records"}


def test_links_to_downloads_stay_links(mirror: Mirror, tmp_path: Path, cache: Path) -> None:
    urls = [f"https://example.org/{number}.png" for number in (2, 0, 1)]
    for url in urls:
        mirror.add(url, url.encode())
    body = f"import os\nfrom mlagentbench.data import fetch\n\ndef full(public, private):\n    for url in {urls}:\n"
    body += "        path = fetch.download(url)\n        os.link(path, public / path.name)\n"
    made = prepare(make_task(tmp_path, body), "full", cache)
    assert {path.stat().st_nlink for path in made.data.public.iterdir()} == {2}
    prepared_data, *downloads = entries(cache)
    assert prepared_data.size < 2000, "its own record alone"
    assert sum(entry.size for entry in downloads) == sum(map(len, urls))


@pytest.mark.parametrize("thing", ["os.symlink('/etc/passwd', public / 'x')", "os.mkfifo(public / 'x')"])
def test_prepared_data_holds_files_only(tmp_path: Path, cache: Path, thing: str) -> None:
    task = make_task(tmp_path, f"import os\n\ndef mini(public, private, seed):\n    {thing}\n")
    with pytest.raises(TaskError, match="neither file nor folder"):
        prepared(task, "mini", cache)


def test_a_variant_that_is_not_there_says_which_is(tmp_path: Path, cache: Path) -> None:
    task = make_task(tmp_path, "def mini(public, private, seed):\n    pass\n")
    with pytest.raises(TaskError, match=r"no function 'full'.*--variant"):
        prepared(task, "full", cache)


def test_a_task_without_data_needs_none(task: Task, cache: Path) -> None:
    (task.folder / "prepare.py").unlink()
    data = prepared(task, "full", cache)
    assert not any(data.public.iterdir()) and not any(data.private.iterdir())


def test_a_prepare_that_is_no_python_is_one_line(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(TaskError, match=r"prepare\.py is no Python"):
        prepared(make_task(tmp_path, "def mini(:\n"), "mini", cache)


def test_real_data_is_announced_with_its_size_its_licence_and_its_terms(mirror: Mirror, tmp_path: Path, cache: Path) -> None:
    mirror.add(URL, b"a,b\n")
    screen = io.StringIO()
    task = make_task(tmp_path, more=DATA)
    prepare(task, "full", cache, console=Console(file=screen, width=60))
    told = screen.getvalue()
    assert "tiny: 1.0 MB to download, 2.0 MB of disk in" in told
    assert "licence: CC BY 4.0" in told
    assert "https://example.org/terms" in told
    assert told.index("licence") < told.index("no checksum is published")
    prepared(task, "full", cache)


def test_what_does_not_fit_on_the_disk_is_not_begun(mirror: Mirror, tmp_path: Path, cache: Path) -> None:
    mirror.add(URL, b"a,b\n")
    task = make_task(tmp_path, more=DATA.replace("disk_mb = 2", "disk_mb = 1_000_000_000"))
    with pytest.raises(TaskError, match=r"tiny needs 1\.0 PB of disk, and .* left; .*--variant mini"):
        prepared(task, "full", cache)
    assert mirror.requests == []


def test_who_waits_says_so(task: Task, cache: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=work, args=(task.folder, cache))
    told = task.folder.parent / "told"
    make_task(task.folder.parent, PREPARE.replace("time.sleep(0.3)", f"\n    while not os.path.exists({str(told)!r}): time.sleep(0.02)"))
    process.start()
    while not list(cache.rglob("train.csv")):
        assert process.is_alive()
        time.sleep(0.01)

    class Screen(io.StringIO):
        def write(self, text: str) -> int:
            told.touch()
            return super().write(text)

    screen = Screen()
    prepare(task, "mini", cache, console=Console(file=screen))
    process.join(HANGING)
    assert "tiny: another process is preparing it" in screen.getvalue()


def test_a_cache_that_cannot_be_written_is_one_line(task: Task) -> None:
    with pytest.raises(TaskError, match=r"cannot write to the cache /proc/cache: .*MLAB_CACHE"):
        prepared(task, "mini", Path("/proc/cache"))


def test_missing_packages_are_told_with_the_command_that_installs_them(
    mirror: Mirror, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "def mini(public, private, seed):\n    import nowhere_to_be_found\n\ndef full(public, private):\n    1 / 0\n"
    task = make_task(tmp_path, body, extras=["tabular", "kaggle"])
    with pytest.raises(TaskError, match="tiny cannot be prepared: No module named 'nowhere_to_be_found'"):
        prepared(task, "mini", cache)
    monkeypatch.setattr("mlagentbench.data.extras._installed", lambda name: name not in ("pandas", "kagglesdk"))
    with pytest.raises(TaskError, match=r'the task tiny needs pandas; install with: pip install "mlagentbench\[tabular\]"'):
        prepared(task, "mini", cache)
    with pytest.raises(TaskError, match=r'needs pandas and kagglesdk; install with: pip install "mlagentbench\[tabular,kaggle\]"'):
        prepared(task, "full", cache)


def test_an_extra_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"there is no extra 'visoin'; there are: .*vision"):
        require_extras(make_task(tmp_path, extras=["visoin"]))


def test_another_interpreter_is_asked_what_it_has(tmp_path: Path) -> None:
    task = make_task(tmp_path, extras=["vision"])
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(TaskError, match=rf'needs torch and pillow, which {bare} lacks; install with: {bare} -m pip install "torch>=2.6"'):
        require_extras(task, bare)
    with pytest.raises(TaskError, match="cannot be asked"):
        require_extras(task, Path("/bin/false"))
