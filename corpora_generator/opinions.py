"""Words of praise and blame, by what they are said of (plain tables).

The notation is that of :mod:`.words`: every third entry is held out.
"""

# domain -> (things reviewed, their parts)
DOMAINS = {
    "film": (
        "film movie comedy documentary drama western",
        """
        plot acting ending script dialogue cinematography soundtrack storyline cast""",
    ),
    "book": (
        "novel book biography thriller memoir story",
        "plot ending prose style opening characterisation",
    ),
    "meal": (
        "meal dinner lunch breakfast buffet brunch",
        """
        soup dessert sauce fish steak bread starter pudding dressing""",
    ),
    "hotel": ("hotel hostel resort guesthouse motel inn", "room staff service pool lobby bathroom"),
    "concert": (
        "concert show recital musical opera gig",
        "singing sound orchestra choir lighting venue",
    ),
    "phone": (
        "phone laptop camera tablet printer headset",
        "screen battery keyboard design software speaker",
    ),
}

# parts that take neither "a" nor a plural
UNCOUNTED = tuple(
    """
        acting dialogue cinematography prose style characterisation fish bread staff service singing sound
        lighting design software""".split()
)

# "any" fits every domain
PRAISE = {
    "any": """
        good great=fantastic excellent wonderful superb impressive amazing delightful marvellous terrific
        pleasant splendid fabulous brilliant outstanding remarkable magnificent exceptional lovely
        perfect phenomenal nice enjoyable admirable satisfying memorable stunning fine flawless exquisite""",
    "film": "gripping funny touching clever thrilling captivating hilarious moving charming",
    "book": "absorbing witty gripping insightful elegant engrossing poetic compelling profound",
    "meal": "tasty delicious mouthwatering fresh flavourful scrumptious juicy tender appetising",
    "hotel": "clean comfortable welcoming spotless friendly inviting luxurious tidy peaceful",
    "concert": "lively thrilling uplifting magical energetic enchanting electrifying beautiful mesmerising",
    "phone": "fast reliable responsive sleek sturdy durable handy practical intuitive",
}
BLAME = {
    "any": """
        bad terrible awful poor horrible dreadful disappointing mediocre appalling dismal
        annoying lousy pathetic unpleasant atrocious lamentable disastrous abysmal ridiculous
        frustrating woeful inferior worthless shoddy irritating hopeless miserable useless ghastly deplorable""",
    "film": "boring predictable tedious silly clumsy pointless confusing dull stale",
    "book": "tedious dull monotonous shallow boring pretentious confusing dreary incoherent",
    "meal": "bland greasy inedible stale cold disgusting soggy burnt tasteless",
    "hotel": "dirty noisy filthy cramped shabby unwelcoming smelly rude grubby",
    "concert": "boring lifeless dreary chaotic uninspired deafening amateurish flat uninspiring",
    "phone": "slow unreliable defective fragile flimsy sluggish outdated buggy cumbersome",
}
# verbs with the speaker as subject, verbs with the thing as subject
LIKE = "like love=adore appreciate enjoy admire recommend praise cherish treasure"
DISLIKE = "hate dislike detest regret resent loathe condemn despise abhor"
PLEASE = "impress delight charm excite amuse enchant please captivate thrill"
ANNOY = "bore disappoint irritate annoy frustrate infuriate upset offend exasperate"
VIRTUES = "charm flair elegance humour style finesse energy depth sophistication warmth character brilliance"
VICES = "flaw problem defect mistake weakness blemish fault error shortcoming"
