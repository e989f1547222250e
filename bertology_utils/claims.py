"""Every claim that a run can judge, as one table: the paper's, those of other papers, and our controls.

A rule is two-sided at 5 % (:mod:`bertology_utils.judge`), with one size of effect for weights,
similarities and shares and one for scores. A claim about every task holds if it holds for each, and
fails if it fails for one after correction for how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

WEIGHT = 0.02  # smallest difference of attention weights, similarities or shares that counts
SCORE = 0.01  # smallest loss of a score that counts as harm: a point
TENTH = 0.001  # of a point: the smallest gain that the paper reports (STS-B)
RANK = 0.8  # Spearman's correlation from which heads keep their rank
# from which two things go together in heads; below it one says less than a tenth of the other (ρ²)
RANKED = 0.3
F1_MARGIN = (
    0.05  # by so much a classifier may be worse than the paper's and still tell the patterns apart
)
# of what [CLS] or [SEP] gets: ours, as the paper gives no number and Figure 6 shows no words
NEGLIGIBLE = 0.1
HETEROGENEOUS = {
    "mrpc": 0.32,
    "qqp": 0.61,
}  # the lowest and the highest share of heterogeneous maps (§4.1)
LARGE = 1 - max(HETEROGENEOUS.values())  # what the paper's largest heterogeneous share leaves
NOT_QQP = ("mrpc", "stsb", "sst2", "rte", "qnli", "mnli")

LEARNED = "the model learned its task: surely above always the same answer"
SINK = "a [SEP] sink: pre-trained, [SEP] gets more than an even share"
GLUE_DATA = "GLUE's own data: sentences of a small grammar cannot answer this"
REAL_TEXT = "real text: a grammar wrote these sentences, and gives words few places"


@dataclass(frozen=True)
class Claim:
    """A claim, or a control of ours.

    Attributes:
        id: its name in code and in results.json.
        section: of the paper, or what other paper; of a control, of the claim that it could
            overturn.
        notebook: where it is judged, by number.
        text: what is claimed, in our words.
        paper: the paper's number or statement; empty for a control.
        estimate: the name of the numbers that decide.
        rule: how they decide, of :data:`bertology_utils.judge.RULES`.
        least: the smallest effect that counts; for a range, its lower end.
        most: of a range, the upper end.
        tasks: that it is about, by name; empty for all.
        needs: preconditions, without which it is not testable.
    """

    id: str
    section: str
    notebook: int
    text: str
    paper: str
    estimate: str
    rule: str
    least: float
    most: float = 0.0
    tasks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def rule_in_words(self) -> str:
        """The rule with its least effect: "each above 0.02"."""
        border = (
            f" {self.least:g} and {self.most:g}" if "within" in self.rule else f" {self.least:g}"
        )
        return f"{self.estimate}: {self.rule}{border if self.rule.endswith(('above', 'below', 'within', 'sign')) else ''}"


# fmt: off
PAPER = (
    Claim("classifier", "4.1", 1, "A network of 8 convolutional layers tells the five patterns apart", "F1 0.86",
          "micro F1 of the network, natural maps", "each above", 0.86 - F1_MARGIN),
    Claim("vertical-labels", "4.1", 1, "Vertical maps are 30 % of those labelled", "30 %",
          "share of labels that are vertical", "each within", 0.25, most=0.35),
    Claim("repeat-heads", "4.1", 1, "A limited set of patterns repeats across heads", "consistently repeated",
          "coverage by two patterns that are not heterogeneous, above random drawing and random weights", "each above", 0.0, needs=(LEARNED,)),
    Claim("repeat-tasks", "4.1", 1, "The patterns repeat across tasks", "consistently repeated",
          "agreement of heads' patterns between tasks", "each above", 0.6, needs=("two learned tasks",)),
    Claim("first-three", "4.1", 1, "Vertical, diagonal and mixed maps make up a large portion", "a large portion",
          "share of maps: the first three patterns", "each above", LARGE, needs=(LEARNED,)),
    Claim("heterogeneous", "4.1", 1, "The share of heterogeneous maps lies within the paper's range on every task", "32 % (MRPC) to 61 % (QQP)",
          "share of maps: heterogeneous, corrected", "each within", 0.32, most=0.61, needs=(GLUE_DATA, LEARNED)),
    Claim("heterogeneous-extremes", "4.1", 1, "MRPC has the fewest heterogeneous maps, QQP the most", "32 %, 61 %",
          "lead of the extreme tasks", "each above", 0.0, needs=("GLUE's own MRPC, QQP and a third task",)),
    Claim("frame-count", "4.2", 2, "The paper's rules leave 473 sentences", "473 of release 1.7",
          "sentences kept", "equal", 473, needs=("release 1.7, with 13,572 lexical units",)),
    Claim("frame-two-heads", "4.2", 2, "Two heads stand out", "0.209, 0.201, beyond the 99th percentile",
          "second head above the third", "each above", WEIGHT),
    Claim("frame-links", "4.2", 2, "Some head attends along frame-semantic links", "2 of 144 heads",
          "excess along frame links over other sentences' places, also with popularity off", "as tested, each", WEIGHT),
    Claim("frame-example", "4.2", 2, "The two highest heads attend from “agitated” to “he” in the paper's sentence", "high weight",
          "attention along the example's link, in even shares", "as tested, each", 2.0),
    Claim("last-layers", "4.3", 3, "The last two layers change most, on all tasks but QQP", "6 of 6 tasks",
          "lead of the last two layers' change", "each above", 0.0, tasks=NOT_QQP, needs=(LEARNED,)),
    Claim("qqp-exception", "4.3", 3, "On QQP other layers than the last two change most", "not the last two layers",
          "lead of the last two layers' change", "not each above", 0.0, tasks=("qqp",), needs=(GLUE_DATA, LEARNED,)),
    Claim("tuned-above-untuned", "4.3", 3, "Fine-tuning raises the score on every task", "+35.9 points on average",
          "gain by fine-tuning", "each above", SCORE),
    Claim("last-layers-gain", "4.3", 3, "The last two layers hold what the gain in score comes from", "concluded, not tested",
          "cost of restoring the last two layers above that of all others", "each above", SCORE, needs=(LEARNED,)),
    Claim("pretraining-helps", "4.3", 3, "Fine-tuned from random weights scores lower, on every task", "-26.4 points on average",
          "gain by pre-training", "each above", SCORE, needs=(LEARNED,)),
    Claim("random-start-behind", "4.3", 3, "On STS-B and QNLI a tuned random start is below the untuned model", "-30.2 and -3.3",
          "share of random classifiers above the tuned random start", "each above", 0.5, tasks=("stsb", "qnli")),
    Claim("stripes-special", "4.4", 4, "Stripes stand predominantly on [CLS] and [SEP]", "predominantly, if not exclusively",
          "share of heads striped on special tokens, above words", "each above", 0.0, needs=(LEARNED,)),
    Claim("sep-one-sentence", "4.4", 4, "[SEP] gets more in SST-2 than elsewhere", "above all other tasks",
          "[SEP] of one sentence above that of two", "each above", 0.0, needs=(SINK, LEARNED,)),
    Claim("cls-early", "4.4", 4, "Earlier layers attend to [CLS]", "on all tasks",
          "weight on [CLS], first half above the second", "each above", WEIGHT, needs=(LEARNED,)),
    Claim("sep-late", "4.4", 4, "Later layers attend to [SEP]", "on all tasks",
          "weight on [SEP], second half above the first", "each above", WEIGHT, needs=(SINK, LEARNED,)),
    Claim("more-nouns", "4.4", 4, "Fine-tuning makes some head attend more to nouns", "on MRPC, RTE, QQP",
          "increase of the weight on nouns", "some head in each", WEIGHT, tasks=("mrpc", "rte", "qqp"), needs=(LEARNED,)),
    Claim("more-objects", "4.4", 4, "Fine-tuning makes some head attend more to objects", "on MRPC, RTE, QQP",
          "increase of the weight on objects", "some head in each", WEIGHT, tasks=("mrpc", "rte", "qqp"), needs=(LEARNED,)),
    Claim("more-negation", "4.4", 4, "Fine-tuning makes some head attend more to negation", "on QNLI",
          "increase of the weight on negation", "some head in each", WEIGHT, tasks=("qnli",), needs=("30 examples with a negation", LEARNED,)),
    Claim("no-more-verbs", "4.4", 4, "Fine-tuning makes no head attend more to verbs", "implied: not among those named",
          "increase of the weight on verbs", "in none of them some head", WEIGHT, needs=(LEARNED,)),
    Claim("no-more-pronouns", "4.4", 4, "Fine-tuning makes no head attend more to pronouns", "implied: not among those named",
          "increase of the weight on pronouns", "in none of them some head", WEIGHT, needs=(LEARNED,)),
    Claim("no-more-subjects", "4.4", 4, "Fine-tuning makes no head attend more to subjects", "implied: not among those named",
          "increase of the weight on subjects", "in none of them some head", WEIGHT, needs=(LEARNED,)),
    Claim("words-negligible", "4.4", 4, "In heads that turned to words these get a negligible weight beside [CLS] and [SEP]", "negligible",
          "what words get in heads that turned to them, as a part of what special tokens get", "each below", NEGLIGIBLE, tasks=("mrpc", "rte", "qqp", "qnli"), needs=("a head that turned to words", LEARNED)),
    Claim("stripes-pretraining", "4.4", 4, "Stripes come from pre-training", "believed, from the above",
          "share of stripes that were there before fine-tuning", "each above", 0.5, needs=(LEARNED,)),
    Claim("verbs-diagonal", "4.5", 5, "The highest heads for verb and subject are diagonal ones", "they coincide",
          "ρ with attention to neighbours, attention along links", "each above", RANKED, needs=("adjacent links",)),
    Claim("pronouns-diagonal", "4.5", 5, "The highest heads for noun and pronoun are diagonal ones", "they coincide",
          "ρ with attention to neighbours, attention along links", "each above", RANKED, needs=(GLUE_DATA, "adjacent links",)),
    Claim("verbs-indistinct", "4.5", 5, "What a verb gives its subject cannot be told from neighbours", "difficult to distinguish",
          "weight along links above other inputs' places and rivals", "as tested, none", WEIGHT, needs=("adjacent links",)),
    Claim("pronouns-indistinct", "4.5", 5, "Noun–pronoun links cannot be told from neighbours", "difficult to distinguish",
          "weight along links above other inputs' places and rivals", "as tested, none", WEIGHT, needs=(GLUE_DATA, "adjacent links",)),
    Claim("cls-reads-sep", "4.5", 5, "In the last layer [CLS] attends most to [SEP], on all but three tasks", "on all but STS-B, RTE, QNLI",
          "share of resamples in which [CLS] attends most to it", "as tested, each", 0.0, tasks=("mrpc", "sst2", "qqp", "mnli"), needs=(SINK, LEARNED,)),
    Claim("cls-reads-punctuation", "4.5", 5, "In the last layer [CLS] attends most to punctuation on STS-B, RTE and QNLI", "by inspection",
          "share of resamples in which [CLS] attends most to it", "as tested, each", 0.0, tasks=("stsb", "rte", "qnli"), needs=(SINK, LEARNED,)),
    Claim("some-head-helps", "4.6", 6, "On every task disabling some head raises the score", "+0.1 (STS-B) to +1.2 (MRPC)",
          "largest gain without a head", "as tested, each", TENTH, needs=(LEARNED,)),
    Claim("some-head-hurts", "4.6", 6, "On every task disabling some head lowers the score", "on every task",
          "rise of the loss without a head", "some head in each", 0.0, needs=(LEARNED,)),
    Claim("impact-differs", "4.6", 6, "What disabling does differs from task to task", "different across tasks",
          "heads' order by effect, alike within a task above between tasks", "as tested, each", 0.0, needs=("two learned tasks",)),
    Claim("random-head-helps", "4.6", 6, "On MRPC and RTE disabling a random head raises the score", "on average",
          "mean gain without a head", "each above", 0.0, tasks=("mrpc", "rte"), needs=(LEARNED,)),
    Claim("some-layer-helps", "4.6", 6, "On some task disabling a layer raises the score", "up to +3.2 (RTE)",
          "largest gain without a layer", "as tested, some", TENTH, needs=(LEARNED,)),
    Claim("first-layer-rte", "4.6", 6, "Disabling the first layer raises the score on RTE", "+3.2",
          "gain without the first layer", "each above", 0.0, tasks=("rte",), needs=(GLUE_DATA, LEARNED,)),
    Claim("worst-layer-small", "4.6", 6, "On QNLI and MNLI disabling any one layer costs less than a point", "up to -0.2",
          "gain without a layer", "as tested, each", -SCORE, tasks=("qnli", "mnli"), needs=(LEARNED,)),
    Claim("several-heads-harmless", "5", 6, "Several heads can go without harm", "not detrimental",
          "gain with a twelfth of the heads off", "each above", -SCORE, needs=(LEARNED,)),
    Claim("frame-heads-unneeded", "5", 6, "The heads of frame-semantic links are not needed", "no drop in accuracy",
          "gain without a frame head", "as tested, each", -SCORE, needs=(LEARNED,)),
    Claim("shared-pair", "5", 6, "STS-B and RTE need the same heads", "(4, 1) and (2, 12)",
          "heads of five that both need, above other pairs of tasks", "each above", 0.0, needs=("STS-B, RTE and a third task, all learned", GLUE_DATA)),
    Claim("both-sentences", "5", 6, "Heads that STS-B and RTE need attend to words that are in both sentences", "by inspection",
          "weight on twin words above other words", "as tested, each", WEIGHT, needs=(GLUE_DATA, "a head that STS-B and RTE both need",)),
)
OTHERS = (
    Claim("norm-cls", "Kobayashi et al. (2020)", 7, "By norm [CLS] gets less than by weight", "its vectors are short",
          "fall of [CLS] by norm", "each above", WEIGHT, needs=("a sink: pre-trained, such a token gets more than an even share", LEARNED)),
    Claim("norm-sep", "Kobayashi et al. (2020)", 7, "By norm [SEP] gets less than by weight", "its vectors are short",
          "fall of [SEP] by norm", "each above", WEIGHT, needs=("a sink: pre-trained, such a token gets more than an even share", LEARNED)),
    Claim("norm-punctuation", "Kobayashi et al. (2020)", 7, "By norm punctuation gets less than by weight", "its vectors are short",
          "fall of punctuation by norm", "each above", WEIGHT, needs=("a sink: pre-trained, such a token gets more than an even share", LEARNED)),
    Claim("sink-noop", "Clark et al. (2019)", 7, "Attention to the sink is a no-op", "supposed, from gradients",
          "answers spared by cutting the sink", "each above", 0.0, needs=(LEARNED,)),
    Claim("relations-rank", "asked here", 7, "Heads keep their rank along dependencies by norm", "not measured",
          "rank correlation of heads along dependencies, norm with weight", "each above", RANK, needs=("such links",)),
    Claim("relations-best", "asked here", 7, "The best head along dependencies is as good when chosen by norm", "not measured",
          "head chosen by norm above that chosen by weight, dependencies", "each above", -WEIGHT, needs=("such links",)),
    Claim("frames-rank", "asked here", 7, "Heads keep their rank along frame-semantic links by norm", "not measured",
          "rank correlation of heads along frame links, norm with weight", "each above", RANK, needs=("such links",)),
    Claim("frames-best", "asked here", 7, "The best head along frame-semantic links is as good when chosen by norm", "not measured",
          "head chosen by norm above that chosen by weight, frame links", "each above", -WEIGHT, needs=("such links",)),
    Claim("mixing-order", "Kobayashi et al. (2021)", 7, "The more is counted, the less do tokens mix", "0.964, 0.853, 0.188",
          "fall of the mixing ratio", "each above", WEIGHT, needs=(LEARNED,)),
    Claim("mixing-kept", "Kobayashi et al. (2021)", 7, "With residual and LayerNorm a token mostly keeps itself", "0.188",
          "share that a token keeps of itself", "each above", 0.5, needs=(LEARNED,)),
    Claim("panels-rank", "the paper's published notebook", 8, "Heads rank as on the published panels", "144 heads on three panels",
          "rank correlation with the published panel", "each above", RANK, needs=("bert-base-uncased, whose heads are published",)),
    Claim("sep-half", "Clark et al. (2019)", 8, "In layers 6 to 10 over half of the attention goes to [SEP]", "over half",
          "share of [SEP] in layers 6 to 10", "each above", 0.5, needs=("bert-base-uncased, whose heads are published",)),
    Claim("relations-ahead", "Clark et al. (2019)", 8, "Along each dependency some head beats the best fixed distance", "nsubj 58.5 against 45.5, obj 86.8 against 40.0, amod 75.6 against 68.3, det 94.3 against 51.7",
          "pointing along a dependency above the best fixed distance", "as tested, each", WEIGHT, needs=("30 arcs of a relation, and room beside a fixed distance", REAL_TEXT)),
    Claim("clark-heads", "Clark et al. (2019)", 8, "The heads that Clark et al. name beat the best fixed distance on other text", "(8, 2), (8, 10), (4, 10), (8, 11)",
          "Clark et al.'s heads above the best fixed distance", "as tested, each", 0.0, needs=("bert-base-uncased, whose heads are published",)),
    Claim("head-own", "asked here", 9, "Most of a head's measured effect is the head's own", "taken for granted",
          "the head's share of what heads differ by", "as tested, each", 0.5, needs=("two trainings of a task", LEARNED)),
    Claim("head-order", "asked here", 9, "The order of heads is the same from training to training", "taken for granted",
          "rank correlation of heads' effects in two trainings", "each above", RANK, needs=("two trainings of a task", LEARNED)),
    Claim("ways-agree", "asked here", 9, "Ways of disabling a head agree on the order of heads", "1/L only",
          "rank correlation of heads' effects by two ways", "each above", RANK, needs=("two ways of disabling", LEARNED)),
    Claim("gains-beyond-luck", "asked here", 9, "The paper's largest gains are beyond luck", "+1.2 of 144 heads, +3.2 of 12 layers",
          "probability of such a gain by idle heads", "as tested, each", 0.0, tasks=("mrpc", "rte"), needs=(GLUE_DATA, LEARNED)),
    Claim("same-pattern", "asked here, of §5", 10, "Heads of one pattern can stand in for each other", "concluded, not tested",
          "interaction above matched pairs", "as tested, each", 0.0, needs=("pairs of one pattern", LEARNED)),
    Claim("third-put-back", "asked here", 10, "The lowest third of the layers can be put back for at most two points", "not measured",
          "gain with the lowest third put back", "each above", -2 * SCORE, needs=(LEARNED,)),
    Claim("third-frozen", "Lee et al. (2019)", 10, "The lowest third of the layers can be frozen for at most two points", "Lee et al.: 90 % of the score with three quarters frozen",
          "gain with the lowest third frozen", "each above", -2 * SCORE, needs=(LEARNED,)),
    Claim("heads-gone", "Michel et al. (2019)", 10, "Three eighths of the heads, ranked by gradients, can go for at most a point", "Michel et al.: 40 % (MNLI)",
          "gain with three eighths of the heads gone", "each above", -SCORE, needs=(LEARNED,)),
    Claim("weights-gone", "Gordon et al. (2020)", 10, "30 and 40 % of the weights can go before fine-tuning for at most a point", "Gordon et al.: -0.1 at 40 % (MNLI)",
          "gain with the smallest weights gone before fine-tuning", "each above", -SCORE, needs=(LEARNED,)),
    Claim("halves-learn", "Prasanna et al. (2020)", 10, "Random and bad halves of the heads, trained again, beat a random start", "Prasanna et al.: 0.790 and 0.803 of 0.845 (MNLI)",
          "gain of half of the heads over a random start", "each above", 0.0, needs=("a random start of a learned task",)),
    Claim("good-half", "Prasanna et al. (2020)", 10, "A half of good heads, trained again, beats one of bad heads", "Prasanna et al.: 0.773 and 0.677 (MRPC), 0.874 and 0.858 (SST-2)",
          "gain of the good half over the bad half", "each above", 0.0, needs=(LEARNED,)),
    Claim("one-head-left", "Michel et al. (2019)", 10, "In some layer all heads but one can go for at most a point", "Michel et al.: in 12 of 12 layers (MNLI)",
          "gain with one head left in a layer", "as tested, each", -SCORE, needs=(LEARNED,)),
    Claim("layers-alike", "Clark et al. (2019)", 10, "Heads of one layer attend more alike than those of two, beyond random weights", "often fairly close",
          "divergence of two layers' heads above that of one layer's, beyond random weights", "each above", 0.0, needs=(LEARNED,)),
)
CONTROLS = (
    Claim("beats-baseline", "4.1", 1, "The network beats logistic regression on map statistics", "",
          "micro F1 of the network above that of logistic regression", "each above", 0.0),
    Claim("constructed-maps", "4.1", 1, "The network names maps of known pattern", "",
          "constructed maps that are named wrongly", "equal", 0),
    Claim("heterogeneous-labels", "4.1", 1, "By the labels themselves 32 % to 61 % are heterogeneous", "",
          "share of labels that are heterogeneous", "each within", 0.32, most=0.61),
    Claim("random-heterogeneous", "4.1", 1, "Random weights give more heterogeneous maps", "",
          "heterogeneous maps with random weights, above fine-tuned", "each above", 0.0, needs=(LEARNED,)),
    Claim("frame-random", "4.2", 2, "The highest head scores above any head with random weights", "",
          "highest head above random weights", "each above", WEIGHT),
    Claim("frame-moved", "4.2", 2, "The highest head prefers links to the same distances and positions elsewhere", "",
          "excess of the highest head", "as tested, each", WEIGHT),
    Claim("frame-back", "4.2", 2, "Some head attends along frame-semantic links the other way round", "",
          "excess along frame links the other way, also with popularity off", "as tested, each", WEIGHT),
    Claim("frame-functions", "4.2", 2, "Some head attends along links that are neither to subjects nor to objects, too", "",
          "excess along links to other elements", "as tested, each", WEIGHT, needs=("grammatical functions, which FrameNet's releases have",)),
    Claim("frame-pointing", "4.2", 2, "The head that points at links most often beats the best fixed distance", "",
          "pointing above the best fixed distance", "each above", 0.0),
    Claim("same-movement", "4.3", 3, "Two trainings change the maps in the same way", "",
          "mean cosine of the changes of maps", "each above", 0.5, needs=(LEARNED,)),
    Claim("task-movement", "4.3", 3, "Two trainings change the maps more alike than trainings on two tasks", "",
          "mean cosine of the changes of maps", "each above", WEIGHT, needs=("two learned tasks",)),
    Claim("random-start-layers", "4.3", 3, "A random start that learns its task changes other layers most", "",
          "lead of the last two layers' change, random start", "each below", 0.0, needs=("three tasks learned from random weights, with changed maps",)),
    Claim("stripes-exclusive", "4.4", 4, "No stripe stands on a word", "",
          "share of heads striped on words", "each below", WEIGHT, needs=(LEARNED,)),
    Claim("cls-early-deeper", "4.4", 4, "Earlier layers attend to [CLS] without the first layer, too", "",
          "weight on [CLS], first half above the second, without layer 1", "each above", WEIGHT, needs=(LEARNED,)),
    Claim("sep-late-deeper", "4.4", 4, "Later layers attend to [SEP] without the first layer, too", "",
          "weight on [SEP], second half above the first, without layer 1", "each above", WEIGHT, needs=(SINK, LEARNED,)),
    Claim("sep-shared", "4.4", 4, "Two [SEP] together get as much as one alone", "",
          "all [SEP] of two sentences above that of one", "each above", 0.0, needs=(SINK, LEARNED,)),
    Claim("more-nouns-matched", "4.4", 4, "Some head turns to nouns, and more than to matched words", "",
          "increase of the weight on nouns, also above matched words", "some head in each", WEIGHT, tasks=("mrpc", "rte", "qqp"), needs=(LEARNED,)),
    Claim("more-objects-matched", "4.4", 4, "Some head turns to objects, and more than to matched words", "",
          "increase of the weight on objects, also above matched words", "some head in each", WEIGHT, tasks=("mrpc", "rte", "qqp"), needs=(LEARNED,)),
    Claim("more-negation-matched", "4.4", 4, "Some head turns to negation, and more than to matched words", "",
          "increase of the weight on negation, also above matched words", "some head in each", WEIGHT, tasks=("qnli",), needs=("30 examples with a negation", LEARNED,)),
    Claim("only-there", "4.4", 4, "Heads turn to nouns, objects and negation, more than to matched words, only where the paper says so", "",
          "increase elsewhere, also above matched words", "in none of them some head", WEIGHT, needs=(LEARNED,)),
    Claim("blind-pretrained", "4.4", 4, "No pre-trained head attends to a type of word more than to matched words", "",
          "excess over matched words, pre-trained", "no head in any", WEIGHT),
    Claim("blind-tuned", "4.4", 4, "No fine-tuned head attends to a type of word more than to matched words", "",
          "excess over matched words, fine-tuned", "no head in any", WEIGHT, needs=(LEARNED,)),
    Claim("subjects-indistinct", "4.5", 5, "What a subject gives its verb cannot be told from neighbours, either", "",
          "weight along links above other inputs' places and rivals", "as tested, none", WEIGHT, needs=("adjacent links",)),
    Claim("subjects-distance", "4.5", 5, "No head points between verb and subject more often than the best fixed distance", "",
          "best head above the best fixed distance", "as tested, none", WEIGHT),
    Claim("gain-elsewhere", "4.6", 6, "A head chosen for its gain gains on other examples, too", "",
          "gain without the chosen head, on other examples", "each above", 0.0, needs=(LEARNED,)),
    Claim("trainings-agree", "5", 6, "Two trainings of a task need the same heads, more than two tasks do", "",
          "heads of five that two trainings need, above two tasks'", "each above", 0.0, needs=("a learned task with two trainings, and another",)),
    Claim("effect-predicted", "5", 6, "What a head attends to predicts what disabling it does", "",
          "rank correlation with the loss without a head", "some beyond, of either sign", 0.3, needs=("a learned task whose losses are reliable: between halves of the examples, surely above 0.5",)),
    Claim("norm-random", "Kobayashi et al. (2020)", 7, "With random weights [CLS] gets as much by norm as by weight", "",
          "fall of [CLS] by norm, random weights", "each within", -WEIGHT, most=WEIGHT),
    Claim("norm-exchanged", "Kobayashi et al. (2020)", 7, "With lengths exchanged among tokens [CLS] falls less", "",
          "fall of [CLS] above that with exchanged lengths", "each above", WEIGHT, needs=(LEARNED,)),
    Claim("norm-heads", "Kobayashi et al. (2020)", 7, "No head gives [CLS] 0.02 more by norm than by weight", "",
          "share of [CLS] of each head, norm above weight", "no head in any", WEIGHT, needs=(LEARNED,)),
    Claim("mixing-random", "Kobayashi et al. (2021)", 7, "With residual and LayerNorm tokens mix more than with random weights", "",
          "mixing ratio above that with random weights", "each above", WEIGHT, needs=(LEARNED,)),
    Claim("relations-random", "Clark et al. (2019)", 8, "With random weights no head points along a dependency better than the best fixed distance", "",
          "heads with random weights above the best fixed distance", "equal", 0, needs=("30 arcs of a relation",)),
    Claim("planted-copy", "5", 10, "A planted copy of a head interacts with it", "",
          "interaction of a planted copy", "each above", 0.0, needs=(LEARNED,)),
    Claim("shuffled-labels", "Prasanna et al. (2020)", 10, "From shuffled labels nothing is learnt", "",
          "shuffled labels above always one answer", "each below", SCORE, needs=(LEARNED,)),
)
# fmt: on
CLAIMS = {claim.id: claim for claim in (*PAPER, *OTHERS, *CONTROLS)}
CONTROL_IDS = frozenset(claim.id for claim in CONTROLS)

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
