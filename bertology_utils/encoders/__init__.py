"""Encoders and classifiers: ``models`` loads them, ``finetune`` trains them, ``evaluate`` predicts with them.

``sources``: what the parameter ``model`` can say. ``checkpoints``: classifiers that
stand for trainings. ``embedded``: the files of the encoder that is used when no other is named.
"""
