"""Experiment files: typed YAML, whose faults name file, line and key, and the items that it stands for."""

from tokdfa.core.packages import require_extra

require_extra("lab", "an experiment")
