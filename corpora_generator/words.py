"""The open-class words, as plain tables.

Notation, in every table: blanks part the entries of a group; ``a=b`` are
synonyms; ``a!b`` are opposites; ``a<b`` says that to a is one way to b (or
that an a is a kind of b).  Every third entry of a group is held out for the
validation rows, with its synonyms and its opposite.
"""

# kind -> (hypernym, entries).  The hypernyms themselves are never held out.
NOUNS = {
    "profession": ("", """
        doctor=physician nurse lawyer=attorney teacher=instructor farmer baker policeman=cop
        plumber dentist waiter=server journalist=reporter banker carpenter judge butcher
        tailor secretary pilot=aviator electrician gardener barber=hairdresser soldier
        fisherman librarian detective=investigator accountant chef=cook mechanic
        priest firefighter=fireman cleaner surgeon student=pupil miner
        landlord=proprietor author=writer photographer merchant=trader receptionist
        manager=supervisor professor=lecturer thief=robber"""),
    "musician": ("musician", """
        pianist drummer guitarist violinist cellist singer=vocalist trumpeter flautist harpist"""),
    "athlete": ("athlete", """
        swimmer runner=sprinter boxer gymnast footballer goalkeeper=goalie cyclist skier wrestler"""),
    "scientist": ("scientist", "chemist physicist biologist astronomer geologist botanist zoologist"),
    "relative": ("relative", "uncle aunt cousin nephew niece grandmother grandfather stepfather"),
    "mammal": ("animal", """
        dog=hound cat horse cow rabbit=hare donkey goat pig=hog sheep monkey fox wolf
        bear camel squirrel elephant tiger deer mouse hamster lion kitten<cat puppy<dog otter"""),
    "bird": ("bird", "sparrow eagle parrot owl duck pigeon swan crow=raven goose robin hawk=falcon penguin"),
    "fruit": ("fruit", "apple pear mango banana peach plum orange grape melon lemon cherry apricot"),
    "vegetable": ("vegetable", "carrot potato cabbage onion tomato turnip cucumber pumpkin radish"),
    "dish": ("meal", """
        pizza salad omelette sandwich stew curry pie burger=hamburger lasagne casserole pancake risotto"""),
    "vehicle": ("vehicle", """
        car=automobile bus van bicycle=bike truck=lorry taxi=cab tractor motorcycle=motorbike ambulance
        scooter=moped minibus jeep"""),
    "boat": ("boat", "canoe ferry yacht raft kayak=paddleboat dinghy"),
    "tool": ("tool", "hammer saw drill shovel=spade axe chisel screwdriver wrench=spanner rake"),
    "instrument": ("musical instrument", """
        piano guitar violin=fiddle flute drum trumpet cello harp accordion clarinet banjo saxophone"""),
    "garment": ("garment", """
        coat=overcoat shirt hat dress=gown jacket sweater=jumper scarf skirt blouse glove vest=waistcoat
        cardigan"""),
    "device": ("device", """
        phone=telephone computer camera laptop=notebook<computer radio television=telly printer keyboard tablet
        calculator scanner projector"""),
    "toy": ("toy", "doll ball kite puzzle=jigsaw marble balloon puppet=marionette yo-yo"),
    "furniture": ("piece of furniture", """
        table chair sofa=couch desk bed wardrobe=closet shelf stool bookcase cupboard=cabinet bench armchair<chair"""),
    "jewel": ("piece of jewellery", "ring necklace bracelet brooch earring pendant=locket"),
    "flower": ("flower", "rose tulip lily daisy orchid daffodil sunflower"),
    "tree": ("tree", "oak pine willow maple birch elm chestnut cedar"),
    "document": ("document", """
        letter report contract=agreement certificate invoice=bill questionnaire=survey receipt notice
        memo=memorandum"""),
    "book": ("book", """
        novel dictionary cookbook diary=journal biography textbook=schoolbook atlas encyclopedia thriller"""),
    "building": ("building", """
        school=academy museum hotel=inn church library hospital factory=plant theatre prison=jail castle
        shop=store barn bakery palace"""),
    "room": ("room", """
        kitchen office bedroom hallway=corridor bathroom attic=loft cellar=basement classroom lounge"""),
    "ground": ("", """
        park garden=yard forest=woods street=road field market valley village meadow desert harbour=port jungle"""),
}

# name -> gender, in groups of which every third name is held out.
NAMES = {
    "she": """
        Anna Maria Helen Julia Emma Ingrid Laura Sophie Clara Alice Martha Teresa Diana Ruth Nadia Susan Olivia
        Fatima""",
    "he": """
        Peter Thomas Ahmed Daniel Robert Carlos George Henry Viktor Oliver Simon Marcus Paul Walter Ivan David
        Samuel Hugo""",
}

CITIES = """
    Paris<France London<England Madrid<Spain Berlin<Germany Rome<Italy Tokyo<Japan
    Moscow<Russia Beijing<China Cairo<Egypt Dublin<Ireland Milan<Italy Munich<Germany
    Boston<America Toronto<Canada Mumbai<India Lyon<France Sydney<Australia Athens<Greece
    Chicago<America Barcelona<Spain Kyoto<Japan Delhi<India Naples<Italy Oslo<Norway"""

# what the adjective says of which kinds of noun
ADJECTIVES = {
    "person": """
        happy=glad!sad=unhappy rich=wealthy!poor brave=courageous!cowardly polite=courteous!rude=impolite
        clever=smart!stupid=foolish angry!calm young=youthful!elderly=old nervous=anxious!relaxed
        honest=truthful!dishonest strong=powerful!weak=feeble lazy=idle!hardworking generous!stingy=miserly
        famous=renowned!unknown=obscure kind=friendly!cruel=unkind healthy=fit!sick=ill patient!impatient
        shy=timid!confident tired=weary!energetic popular!disliked careful=cautious!reckless=careless
        cheerful=merry!gloomy proud!ashamed slim=thin!fat=obese sober!drunk=intoxicated""",
    "animal": """
        tame!wild quick=fast!slow=sluggish hungry fierce=savage!gentle loud=noisy!quiet=silent
        dangerous!harmless""",
    "thing": """
        big=large!small=little expensive=costly!cheap=inexpensive enormous=gigantic!tiny=minuscule
        new!used clean!dirty=filthy modern!ancient=antique beautiful=lovely!ugly=hideous
        heavy!lightweight strange=odd!ordinary wide=broad!narrow valuable!worthless shiny=gleaming!dull""",
    "dish": """
        fresh!stale hot!cold tasty=delicious!bland=flavourless spicy!mild healthy=nutritious!unhealthy
        burnt!undercooked""",
    "produce": """
        fresh!mouldy sweet!sour ripe!unripe tasty=delicious!bland=flavourless juicy!dry rotten=spoiled""",
    "text": """
        long=lengthy!short=brief boring=tedious!interesting secret=confidential!public interesting=engaging
        serious!funny=amusing detailed=thorough!vague""",
    "place": """
        empty=vacant!crowded safe=secure!unsafe dark=gloomy!bright calm=peaceful!chaotic tidy=neat!messy=untidy
        warm!chilly""",
    "colour": "red blue green yellow white purple black grey pink brown",
}

# frame -> (subject kinds, object kinds, entries)
PEOPLE = "profession musician athlete scientist relative"
GOODS = "instrument garment device toy jewel furniture tool"
VERBS = {
    "goods": (PEOPLE, GOODS, """
        buy=purchase!sell hide=conceal!display find=discover lose=misplace steal<take keep=retain!discard
        choose=select!reject drop break=smash!repair=mend=fix collect borrow inspect=examine
        accept!refuse want=desire wrap!unwrap destroy=ruin carry import!export clean=wash!soil"""),
    "transport": (PEOPLE, "vehicle boat", """
        paint rent=lease wreck=demolish!restore hijack<take polish tow=haul insure park"""),
    "text": (PEOPLE, "document book", """
        read write=draft translate print revise=edit sign copy=duplicate publish shred=tear"""),
    "dish": (PEOPLE, "dish", "eat=consume cook=prepare devour<eat serve order taste=sample"),
    "food": (PEOPLE, "fruit vegetable", "eat=consume peel chop<cut slice<cut wash=rinse gobble<eat"),
    "person": (PEOPLE, PEOPLE, """
        help=assist!hinder hire=employ!dismiss=sack praise=commend!criticise=condemn thank love=adore!hate=detest
        trust!distrust invite meet=encounter reward!punish=penalise visit warn=caution
        calm!provoke call=phone forgive=pardon!blame insult=offend!compliment recognise
        defend=protect!attack=assault
        admire=respect!despise interview ignore!notice hug=embrace teach=instruct support!oppose obey!defy=disobey
        follow
        marry!divorce amuse=entertain!bore betray deceive=fool frighten=scare!reassure"""),
    "animal": (PEOPLE, "mammal bird", "feed catch=capture!release rescue=save photograph stroke=caress bathe train"),
    "hunt": ("mammal", "mammal bird", "chase=pursue bite watch=observe kill lick approach!avoid"),
    "plant": (PEOPLE, "flower tree", "plant water sketch<draw prune=trim grow"),
    "building": (PEOPLE, "building room", """
        enter!leave=exit open!close=shut build=construct decorate guard=patrol lock!unlock"""),
    "music": (PEOPLE, "instrument", "play tune dust"),
}
INTRANSITIVE = {
    "person": """
        laugh!cry=weep arrive!depart smile=grin!frown sleep=slumber!wake sing work=toil!rest=relax
        shout=yell!whisper wait dance complain=grumble faint=swoon swim succeed!fail stand!sit
        run vanish=disappear!appear sneeze jump=leap hesitate=waver apologise pray stumble=trip speak
        argue=quarrel!agree""",
    "mammal": "eat doze=nap play howl limp wander=roam hibernate",
}
# Who does it to whom makes no difference.
SYMMETRIC = "meet encounter marry divorce hug embrace".split()
DITRANSITIVE = "give hand send=mail show lend=loan offer bring throw=toss award"
# that-clauses: the complement of the first group is thereby a fact, of the second it is not
FACTIVE = "know notice remember=recall!forget regret realise acknowledge=admit learn confirm see"
ATTITUDE = "believe=think hope suspect claim=allege doubt suppose=guess assume fear insist"
