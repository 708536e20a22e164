"""Charts: pure functions from typed data to Altair charts, a file a chart, and their SVG and PNG without a browser.

Covered: one run (`scores`), and many: the scores of a task's runs, success and improvement by task, what runs cost in tokens, time and
money, and how they ended. Not covered: what the page shows as tables of its own.
"""
