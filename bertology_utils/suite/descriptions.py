"""What the figures of the runs on real data show, in words: their form, which does not depend on the numbers."""

# fmt: off
DESCRIPTIONS = {  # by notebook and figure
    (1, "fig2_shares"): "Figure 2: a bar for each task before and after fine-tuning, divided into the shares of maps with "
                        "each pattern, as the network predicts and corrected for its errors",
    (1, "fig2_by_norm"): "Figure 2 after fine-tuning: a bar for each task, divided into the shares of maps with each "
                         "pattern, by weight and by norm",
    (1, "heterogeneous"): "The share of heterogeneous maps of each task, pre-trained and fine-tuned, with 95 % intervals, "
                          "beside the paper's range",
    (1, "usual_patterns"): "A grid of layers and heads for each task: the pattern that each fine-tuned head shows most often",
    (2, "fig3_scores"): "Figure 3: a grid of layers and heads, the mean largest weight along frame-semantic links, "
                        "pre-trained and with random weights",
    (2, "excess"): "Two grids of layers and heads: the weight along frame-semantic links above that of the same distances "
                   "elsewhere in the sentence, and of the same positions in other sentences; red is more, blue less",
    (3, "table1"): "Table 1 as dots with 95 % intervals, a row for each task and a panel for each column: not fine-tuned, "
                   "fine-tuned from random weights, and fine-tuned; hollow marks are the paper's, ticks always the same answer",
    (3, "fig5_drift"): "Figure 5: a grid of layers and heads for each task, the cosine similarity of maps before and after "
                       "fine-tuning; dark is a large change",
    (3, "drift_by_layer"): "The mean cosine similarity of maps by layer, a panel for each task: before and after "
                           "fine-tuning, between two trainings, and from random weights",
    (3, "fig5_by_norm"): "Two grids of layers and heads: what fine-tuning changes by weight and by norm, mean of the tasks",
    (3, "put_back"): "What putting two neighbouring layers back to their pre-trained weights costs, a panel for each task, "
                     "with 95 % intervals",
    (3, "last_two_ahead"): "A dot with its 95 % interval for each task: by how much the last two layers change more than any "
                           "other; hollow marks are on the side that the paper reports",
    (3, "last_two_or_others"): "For each task what putting the last two layers back to their pre-trained weights costs, what "
                               "putting back all others costs, and all that fine-tuning gained",
    (3, "same_way"): "For each task the cosine of a training's changes with a second training's, and with those of a "
                     "training on another task",
    (4, "attention_flow"): "A bar for each layer, divided into shares of its attention: to [CLS], [SEP], punctuation, the "
                           "previous token, the token itself, the next token and all else; pre-trained, fine-tuned and "
                           "with random weights",
    (4, "fig6_sep_cls"): "Figure 6: a grid of layers and heads for each task, the mean weight on [SEP] above and on [CLS] "
                         "below",
    (4, "fig6_by_norm"): "Figure 6 by weight and by norm: grids of layers and heads, mean of the tasks",
    (4, "fig6_types"): "A grid of layers and heads for each type of word: the mean weight on it, pre-trained",
    (4, "by_layer"): "The mean weight on [CLS] and on [SEP] by layer, a line for each task, one for the pre-trained model "
                     "and one for an even share",
    (4, "excess"): "A grid of layers and heads for each type of word: the weight on it above that on matched words; red is "
                   "more, blue less",
    (4, "changes"): "Grids of layers and heads for [CLS], [SEP] and types of words on each task: the weight after "
                    "fine-tuning minus that before; red is more, blue less",
    (5, "link_scores"): "A grid of layers and heads for each type of link: the mean largest weight along it, pre-trained",
    (5, "links_and_neighbours"): "A dot for each head, a panel for each type of link: attention along links against "
                                 "attention to neighbouring tokens",
    (5, "excess"): "A grid of layers and heads for each type of link: the weight along it above that at other inputs' "
                   "places, as it is and centred; red is more, blue less",
    (5, "fig7_from_cls"): "Figure 7: what [CLS] attends to in the last layer, a row for each task and a column for each "
                          "type of token; fine-tuned, pre-trained and with random weights",
    (5, "fig7_by_norm"): "Figure 7 by weight and by norm: what [CLS] gets from each type of token in the last layer, a row "
                         "for each task",
    (6, "fig8_heads"): "Figure 8: a grid of layers and heads for each task, how the score changes without each head; red is "
                       "a gain, blue a loss, an upward triangle a gain and a downward one a loss beyond chance",
    (6, "fig9_layers"): "Figure 9: the score without each layer, a panel for each task, with 95 % intervals, beside that of "
                        "the whole model",
    (6, "gains_and_chance"): "The gain without the best head, a panel for each task: by chance, observed, and on examples "
                             "that it was not chosen on",
    (6, "cumulative"): "The score as more and more heads are disabled, a panel for each task, with 95 % intervals",
}
# fmt: on
