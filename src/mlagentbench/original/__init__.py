"""Import logs of the original MLAgentBench as runs of this one.

The original (github.com/snap-stanford/MLAgentBench, the code of arXiv 2310.03302) writes a folder per run:

    <run>/
      log                                  its standard output, if it was redirected to a file
      agent_log/main_log                   the agent's instructions, then its turns
      agent_log/agent_<step>_<turn>.json   the agent after a turn: its arguments, and all its turns so far
      agent_log/step_<turn>_log.log        the model calls of that turn; likewise _summary_log, _summarize_observation_log
      env_log/trace.json                   the steps: action, observation, time
      env_log/tool_logs/step_<step>_tool_log.log[_<part>]   the model calls of that step's action
      env_log/traces/step_<step>_files/    the workspace after that step, without its read-only files; step_final_files at the end
      env_log/overall_time.txt, error.txt  its seconds in all; the exception that ended it

The modules: `files` finds and reads log files; `trace`, `calls`, `own_agents`, `other_agents` and `run_info` parse one kind of log each;
`assignment` assigns thoughts and calls to steps; `convert` assembles the run; `earlier_imports` finds earlier imports of a log; `write`
writes runs. The logs are untrusted data: nothing in them is imported, unpickled or executed.
"""
