"""Every claim of the paper that a run can judge, in the paper's order; and our controls, which are never counted with them.

A rule is two-sided at 5 % with one size of effect for weights, similarities
and shares and one for scores, set before looking at these data. Where an entry
says nothing else, a claim about every task holds if it holds for each, and
fails if it fails for one after correction for how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

WEIGHT = 0.02  # smallest difference of attention weights, similarities or shares that counts
PAPER_HETEROGENEOUS = {"mrpc": 0.32, "qqp": 0.61}  # the lowest and the highest share (§4.1)
SCORE = 0.01  # smallest loss of a score that counts as harm: a point

LEARNED = "the model learned its task: surely above always the same answer"
SINK = "a [SEP] sink: pre-trained, [SEP] gets more than an even share"
GLUE_DATA = "GLUE's own data"
NOTEBOOKS = {  # those that judge claims
    1: "1_attention_patterns",
    2: "2_framenet_heads",
    3: "3_finetuning_drift",
    4: "4_feature_attention",
    5: "5_token_to_token",
    6: "6_disabling_heads",
    7: "7_what_attention_weighs",
    8: "8_bert_base",
}


@dataclass(frozen=True)
class Entry:
    """A claim of the paper, or a control of ours.

    Attributes:
        id: its name in code and in results.json.
        section: of the paper, or what other paper; for a control, of the claim that it could overturn.
        claim: what is claimed, in our words.
        paper: the paper's number or statement; empty for a control.
        rule: when it holds here.
        against: when it does not.
        needs: preconditions, without which it is not testable.
        notebook: where it is judged, by number.
    """

    id: str
    section: str
    claim: str
    paper: str
    rule: str
    against: str
    needs: tuple[str, ...]
    notebook: int


def _claim(name: str, section: str, notebook: int, claim: str, paper: str, rule: str, against: str, *needs: str) -> Entry:
    return Entry(name, section, claim, paper, rule, against, needs, notebook)


def _control(name: str, section: str, notebook: int, claim: str, rule: str, against: str, *needs: str) -> Entry:
    return Entry(name, section, claim, "", rule, against, needs, notebook)


# fmt: off
CLAIMS = (
    # 4.1
    _claim("classifier", "4.1", 1, "A network of 8 convolutional layers tells the five patterns apart", "F1 0.86",
           "micro F1 on natural maps within 0.05 of 0.86", "its whole interval outside"),
    _claim("repeat-heads", "4.1", 1, "A limited set of patterns repeats across heads", "consistently repeated",
           "the two commonest patterns are usual for more heads than any two would be by chance", "for fewer", LEARNED),
    _claim("repeat-tasks", "4.1", 1, "The patterns repeat across tasks", "consistently repeated",
           "κ of heads' usual patterns between tasks above 0.6", "below 0.6", "two learned tasks"),
    _claim("first-three", "4.1", 1, "Vertical, diagonal and mixed maps make up a large portion", "a large portion",
           "more than 39 %, what the paper's largest heterogeneous share leaves, on every task", "less on one", LEARNED),
    _claim("heterogeneous", "4.1", 1, "Between 32 % and 61 % of maps are heterogeneous, on every task",
           "32 % (MRPC) to 61 % (QQP)", "corrected share within that range", "outside on one task", LEARNED),
    _claim("heterogeneous-extremes", "4.1", 1, "MRPC has the fewest heterogeneous maps, QQP the most",
           "32 %, 61 %", "each below, or above, every other task", "not so", GLUE_DATA, LEARNED),
    _claim("patterns-change", "4.1", 1, "Fine-tuning changes the patterns of some heads", "asked in RQ 1",
           "another usual pattern in 2 % of heads or more, beyond what other examples change", "in fewer", LEARNED),
    # 4.2
    _claim("frame-count", "4.2", 2, "The paper's rules leave 473 sentences", "473 of release 1.7",
           "473", "another number", "release 1.7, with 13,572 lexical units"),
    _claim("frame-two-heads", "4.2", 2, "Two heads stand out", "0.209, 0.201, beyond the 99th percentile",
           "the second is above the third by more than 0.02", "by less"),
    _claim("frame-links", "4.2", 2, "Some head attends along frame-semantic links", "2 of 144 heads",
           "0.02 or more above other sentences' positions, corrected over heads, and above random weights",
           "no head by 0.02"),
    _claim("frame-example", "4.2", 2, "The two highest heads attend from “agitated” to “he” in the paper's sentence", "high weight",
           "both give it more than twice an even share", "one does not"),
    # 4.3
    _claim("last-layers", "4.3", 3, "The last two layers change most, on all tasks but QQP", "6 of 6 tasks",
           "both change more than every other layer", "one changes less than another layer", LEARNED),
    _claim("qqp-exception", "4.3", 3, "On QQP other layers than the last two change most", "not the last two layers",
           "another layer changes more than one of the last two", "both change most", GLUE_DATA, LEARNED),
    _claim("tuned-above-untuned", "4.3", 3, "Fine-tuning raises the score on every task", "+35.9 points on average",
           "by more than a point over a random classifier on the pre-trained encoder", "by less on one task"),
    _claim("last-layers-gain", "4.3", 3, "The last two layers hold what the gain in score comes from",
           "concluded, not tested", "putting back the pre-trained last two costs a point more than any other two neighbours",
           "other two cost more", LEARNED),
    _claim("pretraining-helps", "4.3", 3, "Fine-tuned from random weights scores lower, on every task",
           "-26.4 points on average", "lower by more than a point", "not lower by a point on one task", LEARNED),
    _claim("random-start-behind", "4.3", 3, "On STS-B and QNLI a tuned random start is below the untuned model",
           "-30.2 and -3.3", "below, on both", "above on one"),
    # 4.4
    _claim("stripes-special", "4.4", 4, "Stripes stand predominantly on [CLS] and [SEP]", "predominantly, if not exclusively",
           "more heads have a stripe on these than on words, on every task", "fewer on one", LEARNED),
    _claim("sep-one-sentence", "4.4", 4, "[SEP] gets more in SST-2 than elsewhere", "above all other tasks",
           "above every two-sentence task", "below one", SINK, LEARNED),
    _claim("cls-early", "4.4", 4, "Earlier layers attend to [CLS]", "on all tasks",
           "the first half gives it 0.02 more than the second, on every task", "less on one", LEARNED),
    _claim("sep-late", "4.4", 4, "Later layers attend to [SEP]", "on all tasks",
           "the second half gives it 0.02 more than the first, on every task", "less on one", SINK, LEARNED),
    _claim("more-nouns", "4.4", 4, "Fine-tuning makes some head attend more to nouns", "on MRPC, RTE, QQP",
           "by 0.02 or more on each, corrected over heads and types", "no head by 0.02 on one", LEARNED),
    _claim("more-objects", "4.4", 4, "Fine-tuning makes some head attend more to objects", "on MRPC, RTE, QQP",
           "by 0.02 or more on each, corrected over heads and types", "no head by 0.02 on one", LEARNED),
    _claim("more-negation", "4.4", 4, "Fine-tuning makes some head attend more to negation", "on QNLI",
           "by 0.02 or more, corrected over heads and types", "no head by 0.02", "30 examples with a negation", LEARNED),
    _claim("words-negligible", "4.4", 4, "What words get is negligible beside [CLS] and [SEP]", "negligible",
           "above an even share less than a tenth of what the special token has above it", "more on one task", LEARNED),
    _claim("stripes-pretraining", "4.4", 4, "Stripes come from pre-training", "believed, from the above",
           "more than half of the heads with one had it before fine-tuning, on every task", "fewer on one", LEARNED),
    # 4.5
    _claim("verbs-diagonal", "4.5", 5, "The highest heads for verb and subject are diagonal ones", "they coincide",
           "the five highest attend to neighbours more than random fives, both ways", "less",
           "adjacent links"),
    _claim("pronouns-diagonal", "4.5", 5, "The highest heads for noun and pronoun are diagonal ones", "they coincide",
           "the five highest attend to neighbours more than random fives, both ways", "less",
           "adjacent links"),
    _claim("verbs-indistinct", "4.5", 5, "Verb–subject links cannot be told from neighbours", "difficult to distinguish",
           "no head attends 0.02 more along them than at other inputs' places", "some head does, also without popularity",
           "adjacent links", LEARNED),
    _claim("pronouns-indistinct", "4.5", 5, "Noun–pronoun links cannot be told from neighbours", "difficult to distinguish",
           "no head attends 0.02 more along them than at other inputs' places", "some head does, also without popularity",
           "adjacent links", LEARNED),
    _claim("cls-reads-sep", "4.5", 5, "In the last layer [CLS] attends most to [SEP], on all but three tasks", "on all but STS-B, RTE, QNLI",
           "more than to every other type but itself, on each", "less than to another on one", SINK, LEARNED),
    _claim("cls-reads-punctuation", "4.5", 5, "In the last layer [CLS] attends most to punctuation on STS-B, RTE and QNLI", "by inspection",
           "more than to every other type but itself, on each", "less than to another on one", SINK, LEARNED),
    # 4.6
    _claim("some-head-helps", "4.6", 6, "On every task disabling some head raises the score",
           "+0.1 (STS-B) to +1.2 (MRPC)", "a gain above zero, corrected over heads, in every training",
           "no head gains a point", LEARNED),
    _claim("some-head-hurts", "4.6", 6, "On every task disabling some head lowers the score", "on every task",
           "a loss, corrected over heads, in every training", "no head costs a point", LEARNED),
    _claim("impact-differs", "4.6", 6, "What disabling does differs from task to task", "different across tasks",
           "the mean loss of a head differs between some two tasks", "not by 0.1 points anywhere", "two learned tasks"),
    _claim("random-head-helps", "4.6", 6, "On MRPC and RTE disabling a random head raises the score", "on average",
           "mean gain over heads above zero, on each", "below zero on one", LEARNED),
    _claim("some-layer-helps", "4.6", 6, "On some task disabling a layer raises the score", "up to +3.2 (RTE)",
           "a gain above zero, corrected over layers, in every training of a task", "no layer gains a point", LEARNED),
    _claim("first-layer-rte", "4.6", 6, "Disabling the first layer raises the score on RTE", "+3.2",
           "gain above zero over trainings", "below zero", LEARNED),
    _claim("worst-layer-small", "4.6", 6, "On QNLI and MNLI disabling a layer costs little", "up to -0.2",
           "no layer costs a point", "some layer costs more than a point", LEARNED),
    # 5
    _claim("several-heads-harmless", "5", 6, "Several heads can go without harm", "not detrimental",
           "half of the heads, those that cost least on other examples, go for less than a point, on every task",
           "for more on one", LEARNED),
    _claim("frame-heads-unneeded", "5", 6, "The heads of frame-semantic links are not needed", "no drop in accuracy",
           "neither costs a point on any task, over trainings", "one costs more on some task", LEARNED),
    _claim("shared-pair", "5", 6, "STS-B and RTE need the same heads", "(4, 1) and (2, 12)",
           "the five most needed have more in common than by chance, in every training", "heads that cost, none in common",
           LEARNED),
    _claim("both-sentences", "5", 6, "Heads that STS-B and RTE need attend to words that are in both sentences", "by inspection",
           "some head both tasks need attends to them 0.02 more than to other words", "none by 0.02", LEARNED),
)
CONTROLS = (
    _control("beats-baseline", "4.1", 1, "The network beats logistic regression on map statistics",
             "higher micro F1 on the same heads", "lower"),
    _control("constructed-maps", "4.1", 1, "The network names maps of known pattern", "all of them", "one wrong"),
    _control("heterogeneous-labels", "4.1", 1, "By the labels themselves 32 % to 61 % are heterogeneous",
             "within that range", "outside"),
    _control("random-heterogeneous", "4.1", 1, "Random weights give more heterogeneous maps", "more than fine-tuned", "fewer",
             LEARNED),
    _control("frame-random", "4.2", 2, "The highest head scores above any head with random weights", "by 0.02", "by less"),
    _control("frame-moved", "4.2", 2, "The highest head prefers links to the same distances and positions elsewhere",
             "by 0.02 over either, corrected over heads", "by less over one"),
    _control("frame-pronouns", "4.2", 2, "The highest head prefers links without pronouns before the predicate, too", "by 0.02", "by less"),
    _control("frame-pointing", "4.2", 2, "The head that points at links most often beats the best fixed distance",
             "more often, chosen on the same sentences", "less often"),
    _control("same-movement", "4.3", 3, "Two trainings change the maps in the same way",
             "cosine of their changes above 0.5", "below 0.5", LEARNED),
    _control("task-movement", "4.3", 3, "Two trainings change the maps more alike than trainings on two tasks",
             "higher by 0.02", "not by 0.02", "two learned tasks"),
    _control("random-start-layers", "4.3", 3, "A random start that learns its task changes other layers most",
             "not the last two", "the last two", "three tasks learned from random weights"),
    _control("stripes-exclusive", "4.4", 4, "No stripe stands on a word",
             "in less than 2 % of heads, on every task", "in more on one", LEARNED),
    _control("cls-early-deeper", "4.4", 4, "Earlier layers attend to [CLS] without the first layer, too", "by 0.02", "less",
             LEARNED),
    _control("sep-late-deeper", "4.4", 4, "Later layers attend to [SEP] without the first layer, too", "by 0.02", "less",
             SINK, LEARNED),
    _control("sep-shared", "4.4", 4, "Two [SEP] together get as much as one alone", "on some two-sentence task", "on none",
             SINK, LEARNED),
    _control("more-nouns-matched", "4.4", 4, "Nouns gain more than matched words", "by 0.02 in some head", "no head", LEARNED),
    _control("more-objects-matched", "4.4", 4, "Objects gain more than matched words", "by 0.02 in some head", "no head",
             LEARNED),
    _control("more-negation-matched", "4.4", 4, "Negations gain more than matched words", "by 0.02 in some head", "no head",
             "30 examples with a negation", LEARNED),
    _control("only-there", "4.4", 4, "Nouns, objects and negations gain more than matched words only where the paper says so", "no head by 0.02 elsewhere", "some head by 0.02", LEARNED),
    _control("blind-pretrained", "4.4", 4, "No pre-trained head attends to a type of word more than to matched words",
             "none by 0.02", "some head by 0.02"),
    _control("blind-tuned", "4.4", 4, "No fine-tuned head attends to a type of word more than to matched words",
             "none by 0.02", "some head by 0.02", LEARNED),
    _control("subjects-distance", "4.5", 5, "No head points from verb to subject more often than the best fixed distance",
             "none by 2 points", "some head, corrected over heads"),
    _control("gain-elsewhere", "4.6", 6, "A head chosen for its gain gains on other examples, too",
             "above zero on every task", "below zero on one", LEARNED),
    _control("trainings-agree", "5", 6, "Two trainings need the same heads", "more in common than by chance",
             "heads that cost, none in common", LEARNED),
    _control("effect-predicted", "5", 6, "What a head attends to predicts what disabling it does",
             "rank correlation with the loss beyond 0.3, of either sign", "none beyond 0.3", LEARNED),
)
# fmt: on

# What a reader of the paper asks first, from all of its sections: the README's table.
FIRST = (
    "repeat-heads",
    "heterogeneous",
    "frame-links",
    "last-layers",
    "pretraining-helps",
    "stripes-special",
    "sep-late",
    "verbs-indistinct",
    "some-head-helps",
    "several-heads-harmless",
)
