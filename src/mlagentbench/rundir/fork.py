"""Begin a new run with a copy of another's steps."""

from __future__ import annotations

import shutil

from mlagentbench.errors import RunNotFound
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import storage
from mlagentbench.util.atomic import flush


def fork(source: RunDirectory, info: RunInfo, step: int) -> RunDirectory:
    """Create the directory of a new run that begins with a copy of another's steps up to `step`; 0 is for none.

    Raises:
        StorageFailed: the disk is full or read-only.
        RunNotFound: a file of these steps is missing.
    """
    files = [source.manifest(number) for number in range(step + 1)]
    files += [path for number in range(1, step + 1) if (path := source.home_manifest(number)).exists()]
    files += [path for number in range(1, step + 1) for path in sorted(source.steps_folder.glob(f"{number:04d}.*"))]
    for file in files:
        if not file.is_file():
            raise RunNotFound(f"{source.path} is damaged: it has no {file.relative_to(source.path)}; fork it from an earlier step")
    new = RunDirectory(source.path.parent / info.run)
    with storage(new.path):
        new.make_folders()
        try:
            for file in files:
                copy = new.path / file.relative_to(source.path)
                shutil.copyfile(file, copy)
                flush(copy)
            for given, copy in ((source.experience, new.experience), (source.documents, new.documents)):
                if given.exists():
                    shutil.copytree(given, copy)
            for folder in (new.steps_folder, new.snapshots_folder):
                flush(folder)
            new.appear(info)
        except OSError:
            shutil.rmtree(new.path, ignore_errors=True)
            raise
    return new
