"""Encoders and classifiers: ``models`` loads them, ``finetune`` trains them, ``evaluate`` predicts with them.

``embedded``: the files of the encoder that is used when no other is named.
"""
