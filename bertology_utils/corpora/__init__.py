"""The embedded corpora: GLUE's layout and CoNLL-U, and a mini-FrameNet in FrameNet's own XML.

``glue/TASK/`` holds ``train.tsv.gz``, ``dev.tsv.gz`` and the dev rows' gold
annotation ``dev.conllu.gz``. The files are read like a person's own
(``folder:PATH``, ``conllu:PATH``, ``zip:PATH``). ``corpora_generator``, beside
the package, writes them and has their data card.
"""

from pathlib import Path

GLUE = Path(__file__).parent / "glue"
FRAMENET = Path(__file__).parent / "mini_framenet.zip"
# a file beside tasks that says that their rows come from the grammar, though they lie in a folder
GENERATED = "generated.txt"
