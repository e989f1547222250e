"""Claims of other papers that the survey *A Primer in BERTology* gathers, and our controls of them; counted apart."""

from __future__ import annotations

from .register import LEARNED, Entry

KOBAYASHI = "Kobayashi et al. (2020)"
MIXING = "Kobayashi et al. (2021)"
CLARK = "Clark et al. (2019)"
HERE = "asked here"
GETS = "a sink: pre-trained and by weight, such a token gets more than an even share"


def _claim(name: str, source: str, claim: str, paper: str, rule: str, against: str, *needs: str) -> Entry:
    return Entry(name, source, claim, paper, rule, against, needs, 7)


def _control(name: str, source: str, claim: str, rule: str, against: str, *needs: str) -> Entry:
    return Entry(name, source, claim, "", rule, against, needs, 7)


# fmt: off
COMPANIONS = (
    _claim("norm-cls", KOBAYASHI, "By norm [CLS] gets less than by weight", "its vectors are short",
           "0.02 less on every task, before and after fine-tuning", "not 0.02 less on one", GETS, LEARNED),
    _claim("norm-sep", KOBAYASHI, "By norm [SEP] gets less than by weight", "its vectors are short",
           "0.02 less on every task, before and after fine-tuning", "not 0.02 less on one", GETS, LEARNED),
    _claim("norm-punctuation", KOBAYASHI, "By norm punctuation gets less than by weight", "its vectors are short",
           "0.02 less on every task, before and after fine-tuning", "not 0.02 less on one", GETS, LEARNED),
    _claim("sink-noop", CLARK, "Attention to the sink is a no-op", "supposed, from gradients",
           "answers move less if it is cut, as far as words have as much, than if that is cut from words, on every task", "more on one", LEARNED),
    _claim("relations-rank", HERE, "Heads keep their rank along dependencies by norm", "not measured",
           "Spearman's ρ over heads above 0.8 for each relation, before and after fine-tuning", "below 0.8 for one", LEARNED),
    _claim("relations-best", HERE, "The best head along dependencies is as good when chosen by norm", "not measured",
           "on other sentences not 2 points behind the head chosen by weight, for each relation", "2 points behind for one"),
    _claim("frames-rank", HERE, "Heads keep their rank along frame-semantic links by norm", "not measured",
           "Spearman's ρ over heads above 0.8, also with special tokens left out", "below 0.8"),
    _claim("frames-best", HERE, "The best head along frame-semantic links is as good when chosen by norm", "not measured",
           "on other sentences not 0.02 behind the head chosen by weight", "0.02 behind"),
    _claim("needed-unclear", HERE, "The heads that matter most show no clearer pattern by norm", "not measured",
           "maps with one of the paper's patterns are not 0.02 more of theirs, on every task", "0.02 more on one", LEARNED),
    _claim("mixing-order", MIXING, "The more is counted, the less do tokens mix", "0.964, 0.853, 0.188",
           "less by 0.02 from weights to norms, and to norms with residual and LayerNorm, on every task, before and after",
           "not less by 0.02 on one", LEARNED),
    _claim("mixing-kept", MIXING, "With residual and LayerNorm a token mostly keeps itself", "0.188",
           "mixing ratio below one half on every task, before and after fine-tuning", "above on one", LEARNED),
)
COMPANION_CONTROLS = (
    _control("norm-random", KOBAYASHI, "With random weights [CLS] gets as much by norm as by weight", "within 0.02", "not so"),
    _control("norm-exchanged", KOBAYASHI, "With lengths exchanged among tokens [CLS] falls less",
             "by 0.02 less than with each token's own length, on every task", "not 0.02 less on one", LEARNED),
    _control("norm-heads", KOBAYASHI, "No head gives [CLS] 0.02 more by norm than by weight", "none, on every task",
             "some head", LEARNED),
    _control("sink-gradient", CLARK, "A weight on the sink means less to the answer than one on a word",
             "smaller gradient on every task", "larger on one", LEARNED),
)
