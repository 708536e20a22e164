"""Logs of the original MLAgentBench, read into the runs of this one.

The original (github.com/snap-stanford/MLAgentBench, the code of arXiv 2310.03302) writes a folder a run:

    <run>/
      log                                  what it printed, where it was sent to a file
      agent_log/main_log                   what the agent was told, then its turns
      agent_log/agent_<step>_<turn>.json   the agent after a turn: its arguments, and all its turns so far
      agent_log/step_<turn>_log.log        what its model was asked for that turn, and the replies; _summary_log, _summarize_observation_log
      env_log/trace.json                   the steps: action, observation, time
      env_log/tool_logs/step_<step>_tool_log.log[_<part>]   what models were asked by that step's action
      env_log/traces/step_<step>_files/    the workspace after that step, without its read-only files; step_final_files at the end
      env_log/overall_time.txt, error.txt  how long it took; the exception that ended it

A file each here: `files` finds and reads, `trace`, `calls`, `turns`, `guests` and `facts` know one kind of log each, `convert` puts them
together, `known` finds earlier imports of a log, `write` writes runs. What is read is data: nothing of it is imported, unpickled or run.
"""
