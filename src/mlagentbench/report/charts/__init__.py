"""Draw charts: pure functions from typed data to Altair charts, one file for each chart, and their SVG and PNG without a browser.

Covered are one run (`scores`), and many: the scores of a task's runs, success and improvement by task, success at other thresholds, what
runs cost in tokens, time and money, and how they ended. The page shows some of this as HTML tables instead (`page/comparison.py`).
"""
