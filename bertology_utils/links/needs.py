"""What is trained for §4.5: some classifiers for each task."""

from ..encoders.needs import finetunings as needs

__all__ = ["needs"]
