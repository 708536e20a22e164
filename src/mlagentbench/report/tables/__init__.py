"""Results as tables: a typed model (`model.py`), filled from runs (`build.py`), written as files (`export.py`) or in a terminal."""
