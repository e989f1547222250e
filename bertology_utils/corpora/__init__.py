"""The synthetic corpora: three tasks in GLUE's form with CoNLL-U, and a mini-FrameNet in XML.

``glue/TASK/`` holds ``train.tsv.gz``, ``dev.tsv.gz`` and the dev rows' gold annotation,
``dev.conllu.gz``. The readers of other people's data (``folder:PATH``, ``conllu:PATH``,
``zip:PATH``) read these files as well. ``README.md`` is their data card.
"""

from pathlib import Path

GLUE = Path(__file__).parent / "glue"
FRAMENET = Path(__file__).parent / "mini_framenet.zip"
TASKS = ("mrpc", "stsb", "sst2")
