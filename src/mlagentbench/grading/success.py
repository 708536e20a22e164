"""The rules of `tasks/success.py`, by their earlier name."""

from mlagentbench.tasks.success import NEAR_ZERO, THRESHOLD, is_near_zero, is_success, within_noise

__all__ = ["NEAR_ZERO", "THRESHOLD", "is_near_zero", "is_success", "within_noise"]
