"""What is trained for §4.5: one classifier for each task."""

from ..encoders.needs import finetunings as needs

__all__ = ["needs"]
