# Run AIDE, then its best script once more, so that the submission is that of the best.
# AIDE works in its home, where ./input has links to the files of the workspace, and its scripts write the submission to the workspace.
set -e
cd "$HOME"
cat "$MLAB_TASK_FILE" - > description.md <<'END'

The working directory of the task is /workspace, and its files are also at ./input. Whatever the task asks you to leave or to change, such as
submission.csv or a script, is graded where it stands in /workspace: write it there, by its absolute path, and nothing else beside it.
END
python /opt/aide-start/start.py data_dir=/workspace desc_file=description.md log_dir=logs workspace_dir=workspaces exp_name=run \
    preprocess_data=False copy_data=False generate_report=False agent.steps="$1" exec.timeout="$2" agent.search.num_drafts="$3" \
    agent.k_fold_validation="$4" agent.code.model=inspect agent.feedback.model=inspect report.model=inspect
cd "$HOME"/workspaces/*-run
python "$HOME"/logs/*-run/best_solution.py
