"""Make tables of results: a typed model (`model.py`), filled from runs (`build.py`), written to files (`export.py`) or a terminal."""
