"""The mixing ratio, which notebook 8 measures; what heads carry from sinks is in :mod:`bertology_utils.sinks`."""
