"""What fine-tuning changes (§4.3): see :mod:`bertology_utils.drift.measure`."""
