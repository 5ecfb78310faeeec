"""Experiment files: typed YAML, whose faults name file, line and key, and the items that it stands for."""
