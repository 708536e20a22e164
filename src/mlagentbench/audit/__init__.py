"""Check what agents said against what they had seen, and say how their runs failed. Rules only: no model is asked."""
