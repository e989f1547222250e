"""How far the embedded corpora's gold annotation and a spaCy pipeline agree.

    python -m benchmarks.gold_against_spacy PIPELINE [--sentences 400] [--show 20]

PIPELINE is a name or a folder; Universal Dependencies and ClearNLP labels are
both understood.  Writes its figures to gold_against_spacy.json beside it, and
shows some disagreements, drawn at random, to be told apart by a reader.
"""

import argparse
import json
import random
from collections import Counter
from pathlib import Path

import spacy

from corpora_generator import MAKERS, digests, generate

SUBJECTS = {"nsubj", "nsubj:pass", "nsubjpass"}
OBJECTS = {"obj", "dobj"}
# What a pipeline says of itself.
OWN = ("pos_acc", "dep_uas", "dep_las")


def sentences(task: str, count: int, seed: int) -> list:
    """Distinct sentences of the task's rows, drawn by the seed; of a field of two, the first."""
    rows = [row for split in generate(task).values() for row in split]
    distinct = {s.text: s for row in rows for items in row.sentences.values() for s in items[:1]}
    return random.Random(f"{task}-{seed}").sample(
        list(distinct.values()), min(count, len(distinct))
    )


def aligned(sentence, parsed) -> list | None:
    """For each gold word the spaCy token that starts it; None if a token crosses a word's border.

    "didn't" is one word of ours and two tokens of spaCy's; its first is the auxiliary.
    """
    starts = {word.start: i for i, word in enumerate(sentence.words)}
    ends = {word.end for word in sentence.words}
    found: list = [None] * len(sentence.words)
    for token in parsed:
        if token.idx in starts:
            found[starts[token.idx]] = token
    closed = {token.idx + len(token) for token in parsed}
    return found if all(found) and ends <= closed else None


def word_of(token, sentence) -> int:
    """The gold word that a token lies in."""
    return next(i for i, word in enumerate(sentence.words) if word.start <= token.idx < word.end)


def links(sentence, parsed) -> dict[str, tuple[set, set]]:
    """(gold, parsed) sets of (dependent, head) for subjects and objects."""
    both = {}
    for name, labels in (("subject", SUBJECTS), ("object", OBJECTS)):
        gold = {(i, word.head) for i, word in enumerate(sentence.words) if word.deprel in labels}
        seen = {
            (word_of(t, sentence), word_of(t.head, sentence)) for t in parsed if t.dep_ in labels
        }
        both[name] = gold, seen
    return both


def compare(nlp, task: str, count: int, seed: int) -> tuple[Counter, list[str]]:
    """Counts of agreement, and one line per disagreement."""
    counts, differences = Counter(), []
    chosen = sentences(task, count, seed)
    for sentence, parsed in zip(chosen, nlp.pipe(s.text for s in chosen), strict=True):
        tokens = aligned(sentence, parsed)
        counts["sentences"] += 1
        if tokens is None:
            counts["not aligned"] += 1
            continue
        for word, token in zip(sentence.words, tokens, strict=True):
            counts["words"] += 1
            counts["upos equal"] += word.upos == token.pos_
            if word.upos != token.pos_:
                differences.append(
                    f"{task}: {word.form}: ours {word.upos}, spaCy {token.pos_} | {sentence.text}"
                )
        for name, (gold, seen) in links(sentence, parsed).items():
            counts[f"{name}s ours"] += len(gold)
            counts[f"{name}s spaCy"] += len(seen)
            counts[f"{name}s both"] += len(gold & seen)
            alone = [("ours", link) for link in sorted(gold - seen)] + [
                ("spaCy", link) for link in sorted(seen - gold)
            ]
            for whose, (dependent, head) in alone:
                forms = sentence.words[dependent].form, sentence.words[head].form
                differences.append(
                    f"{task}: {name} of only {whose}: {forms[0]} <- {forms[1]} | {sentence.text}"
                )
    return counts, differences


def shares(counts: Counter) -> dict[str, float]:
    """Agreement as shares: of words, of our links found by the pipeline, of its links that are ours."""
    result = {"upos": counts["upos equal"] / counts["words"]}
    for name in ("subject", "object"):
        if counts[f"{name}s ours"] and counts[f"{name}s spaCy"]:
            result[f"{name}s of ours found"] = counts[f"{name}s both"] / counts[f"{name}s ours"]
            result[f"{name}s of spaCy's that are ours"] = (
                counts[f"{name}s both"] / counts[f"{name}s spaCy"]
            )
    return {key: round(value, 4) for key, value in result.items()}


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline")
    parser.add_argument("--sentences", type=int, default=400, help="per task")
    parser.add_argument("--show", type=int, default=20, help="disagreements to print")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    nlp = spacy.load(options.pipeline)
    if "parser" not in nlp.pipe_names:
        parser.error(
            f"the pipeline {options.pipeline} has no parser, only {', '.join(nlp.pipe_names)}"
        )
    results, total, differences = {}, Counter(), []
    for task in MAKERS:
        counts, differing = compare(nlp, task, options.sentences, options.seed)
        results[task] = {**counts, **shares(counts)}
        total += counts
        differences += differing
    results["all"] = {**total, **shares(total)}
    meta = {
        "corpora": digests(),
        "sentences a task": options.sentences,
        "pipeline": f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}",
        "spacy": spacy.__version__,
        "seed": options.seed,
        "own accuracy": {key: nlp.meta.get("performance", {}).get(key) for key in OWN},
    }
    Path(__file__).with_suffix(".json").write_text(
        json.dumps({**meta, "tasks": results}, indent=1) + "\n"
    )
    for task, values in results.items():
        print(
            task,
            {key: value for key, value in values.items() if isinstance(value, float)},
            values["words"],
            "words",
        )
    print(
        *random.Random(options.seed).sample(differences, min(options.show, len(differences))),
        sep="\n",
    )


if __name__ == "__main__":
    main()
