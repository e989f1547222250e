"""The words of the grammar, as plain tables.

In every table ``kind:`` begins a group and blanks separate its entries; ``a=b`` are synonyms,
``a!b`` are opposites, and ``a<b`` says that an a is a kind of b, or that who does a does b.
Every third entry of a group is held out for the dev rows, with its synonyms and its opposite.
"""

NOUNS = """
profession: doctor=physician nurse lawyer=attorney teacher=instructor farmer baker policeman=cop
    plumber dentist waiter=server journalist=reporter banker carpenter judge butcher tailor
    secretary pilot=aviator electrician gardener barber=hairdresser soldier fisherman librarian
    detective=investigator accountant chef=cook mechanic priest firefighter=fireman cleaner surgeon
    student=pupil miner landlord=proprietor author=writer photographer merchant=trader receptionist
    manager=supervisor professor=lecturer thief=robber
musician: pianist drummer guitarist violinist cellist singer=vocalist trumpeter flautist harpist
athlete: swimmer runner=sprinter boxer gymnast footballer goalkeeper=goalie cyclist skier wrestler
scientist: chemist physicist biologist astronomer geologist botanist zoologist
relative: uncle aunt cousin nephew niece grandmother grandfather stepfather
mammal: dog=hound cat horse cow rabbit=hare donkey goat pig=hog sheep monkey fox wolf bear camel
    squirrel elephant tiger deer mouse hamster lion kitten<cat puppy<dog otter
bird: sparrow eagle parrot owl duck pigeon swan crow=raven goose robin hawk=falcon penguin
fruit: apple pear mango banana peach plum orange grape melon lemon cherry apricot
vegetable: carrot potato cabbage onion tomato turnip cucumber pumpkin radish
dish: pizza salad omelette sandwich stew curry pie burger=hamburger lasagne casserole pancake
    risotto
vehicle: car=automobile bus van bicycle=bike truck=lorry taxi=cab tractor motorcycle=motorbike
    ambulance scooter=moped minibus jeep
boat: canoe ferry yacht raft kayak=paddleboat dinghy
tool: hammer saw drill shovel=spade axe chisel screwdriver wrench=spanner rake
instrument: piano guitar violin=fiddle flute drum trumpet cello harp accordion clarinet banjo
    saxophone
garment: coat=overcoat shirt hat dress=gown jacket sweater=jumper scarf skirt blouse glove
    vest=waistcoat cardigan
device: phone=telephone computer camera laptop=notebook<computer radio television=telly printer
    keyboard tablet calculator scanner projector
toy: doll ball kite puzzle=jigsaw marble balloon puppet=marionette yo-yo
furniture: table chair sofa=couch desk bed wardrobe=closet shelf stool bookcase cupboard=cabinet
    bench armchair<chair
jewel: ring necklace bracelet brooch earring pendant=locket
flower: rose tulip lily daisy orchid daffodil sunflower
tree: oak pine willow maple birch elm chestnut cedar
document: letter report contract=agreement certificate invoice=bill questionnaire=survey receipt
    notice memo=memorandum
book: novel dictionary cookbook diary=journal biography textbook=schoolbook atlas encyclopedia
    thriller
building: school=academy museum hotel=inn church library hospital factory=plant theatre prison=jail
    castle shop=store barn bakery palace
room: kitchen office bedroom hallway=corridor bathroom attic=loft cellar=basement classroom lounge
ground: park garden=yard forest=woods street=road field market valley village meadow desert
    harbour=port jungle

film-thing: film movie comedy documentary drama western
film-part: plot acting ending script dialogue cinematography soundtrack storyline cast
book-thing: novel book biography thriller memoir story
book-part: plot ending prose style opening characterisation
meal-thing: meal dinner lunch breakfast buffet brunch
meal-part: soup dessert sauce fish steak bread starter pudding dressing
hotel-thing: hotel hostel resort guesthouse motel inn
hotel-part: room staff service pool lobby bathroom
concert-thing: concert show recital musical opera gig
concert-part: singing sound orchestra choir lighting venue
phone-thing: phone laptop camera tablet printer headset
phone-part: screen battery keyboard design software speaker
virtue: charm flair elegance humour style finesse energy depth sophistication warmth character
    brilliance
vice: flaw problem defect mistake weakness blemish fault error shortcoming"""

NAMES = """
she: Anna Maria Helen Julia Emma Ingrid Laura Sophie Clara Alice Martha Teresa Diana Ruth Nadia
    Susan Olivia Fatima
he: Peter Thomas Ahmed Daniel Robert Carlos George Henry Viktor Oliver Simon Marcus Paul Walter Ivan
    David Samuel Hugo
city: Paris London Madrid Berlin Rome Tokyo Moscow Beijing Cairo Dublin Milan Munich Boston Toronto
    Mumbai Lyon Sydney Athens Chicago Barcelona Kyoto Delhi Naples Oslo"""

# Verbs by their frame: what they take as an object, or what the opinion is that they express.
VERBS = """
goods: buy=purchase!sell hide=conceal!display find=discover lose=misplace steal<take
    keep=retain!discard choose=select!reject drop break=smash!repair=mend=fix collect borrow
    inspect=examine accept!refuse want=desire wrap!unwrap destroy=ruin carry import!export
    clean=wash!soil
transport: paint rent=lease wreck=demolish!restore hijack<take polish tow=haul insure park
text: read write=draft translate print revise=edit sign copy=duplicate publish shred=tear
dish: eat=consume cook=prepare devour<eat serve order taste=sample
food: eat=consume peel chop<cut slice<cut wash=rinse gobble<eat
person: help=assist!hinder hire=employ!dismiss=sack praise=commend!criticise=condemn thank
    love=adore!hate=detest trust!distrust invite meet=encounter reward!punish=penalise visit
    warn=caution calm!provoke call=phone forgive=pardon!blame insult=offend!compliment recognise
    defend=protect!attack=assault admire=respect!despise interview ignore!notice hug=embrace
    teach=instruct support!oppose obey!defy=disobey follow marry!divorce amuse=entertain!bore betray
    deceive=fool frighten=scare!reassure
animal: feed catch=capture!release rescue=save photograph stroke=caress bathe train
hunt: chase=pursue bite watch=observe kill lick approach!avoid
plant: plant water sketch<draw prune=trim grow
building: enter!leave=exit open!close=shut build=construct decorate guard=patrol lock!unlock
music: play tune dust
alone: laugh!cry=weep arrive!depart smile=grin!frown sleep=slumber!wake sing work=toil!rest=relax
    shout=yell!whisper wait dance complain=grumble faint=swoon swim succeed!fail stand!sit run
    vanish=disappear!appear sneeze jump=leap hesitate=waver apologise pray stumble=trip speak
    argue=quarrel!agree
give: give hand send=mail show lend=loan offer bring throw=toss award

like: like love=adore appreciate enjoy admire recommend praise cherish treasure
dislike: hate dislike detest regret resent loathe condemn despise abhor
please: impress delight charm excite amuse enchant please captivate thrill
annoy: bore disappoint irritate annoy frustrate infuriate upset offend exasperate"""
# The kinds of noun that are objects of a frame's verbs.
OBJECTS = """
goods: instrument garment device toy jewel furniture tool
transport: vehicle boat
text: document book
dish: dish
food: fruit vegetable
person: profession musician athlete scientist relative
animal: mammal bird
hunt: mammal bird
plant: flower tree
building: building room
music: instrument
give: instrument garment device toy jewel furniture tool book"""
# It makes no difference who does these to whom.
SYMMETRIC = "meet encounter marry divorce hug embrace".split()

ADJECTIVES = """
person: happy=glad!sad=unhappy rich=wealthy!poor brave=courageous!cowardly
    polite=courteous!rude=impolite clever=smart!stupid=foolish angry!calm young=youthful!elderly=old
    nervous=anxious!relaxed honest=truthful!dishonest strong=powerful!weak=feeble
    lazy=idle!hardworking generous!stingy=miserly famous=renowned!unknown=obscure
    kind=friendly!cruel=unkind healthy=fit!sick=ill patient!impatient shy=timid!confident
    tired=weary!energetic popular!disliked careful=cautious!reckless=careless cheerful=merry!gloomy
    proud!ashamed slim=thin!fat=obese sober!drunk=intoxicated
animal: tame!wild quick=fast!slow=sluggish hungry fierce=savage!gentle loud=noisy!quiet=silent
    dangerous!harmless
dish: fresh!stale hot!cold tasty=delicious!bland=flavourless spicy!mild healthy=nutritious!unhealthy
    burnt!undercooked
produce: fresh!mouldy sweet!sour ripe!unripe tasty=delicious!bland=flavourless juicy!dry
    rotten=spoiled
text: long=lengthy!short=brief boring=tedious!interesting secret=confidential!public
    interesting=engaging serious!funny=amusing detailed=thorough!vague
place: empty=vacant!crowded safe=secure!unsafe dark=gloomy!bright calm=peaceful!chaotic
    tidy=neat!messy=untidy warm!chilly
colour: red blue green yellow white purple black grey pink brown
thing: big=large!small=little expensive=costly!cheap=inexpensive enormous=gigantic!tiny=minuscule
    new!used clean!dirty=filthy modern!ancient=antique beautiful=lovely!ugly=hideous
    heavy!lightweight strange=odd!ordinary wide=broad!narrow valuable!worthless shiny=gleaming!dull

good: good great=fantastic excellent wonderful superb impressive amazing delightful marvellous
    terrific pleasant splendid fabulous brilliant outstanding remarkable magnificent exceptional
    lovely perfect phenomenal nice enjoyable admirable satisfying memorable stunning fine flawless
    exquisite
good-film: gripping funny touching clever thrilling captivating hilarious moving charming
good-book: absorbing witty gripping insightful elegant engrossing poetic compelling profound
good-meal: tasty delicious mouthwatering fresh flavourful scrumptious juicy tender appetising
good-hotel: clean comfortable welcoming spotless friendly inviting luxurious tidy peaceful
good-concert: lively thrilling uplifting magical energetic enchanting electrifying beautiful
    mesmerising
good-phone: fast reliable responsive sleek sturdy durable handy practical intuitive
bad: bad terrible awful poor horrible dreadful disappointing mediocre appalling dismal annoying
    lousy pathetic unpleasant atrocious lamentable disastrous abysmal ridiculous frustrating woeful
    inferior worthless shoddy irritating hopeless miserable useless ghastly deplorable
bad-film: boring predictable tedious silly clumsy pointless confusing dull stale
bad-book: tedious dull monotonous shallow boring pretentious confusing dreary incoherent
bad-meal: bland greasy inedible stale cold disgusting soggy burnt tasteless
bad-hotel: dirty noisy filthy cramped shabby unwelcoming smelly rude grubby
bad-concert: boring lifeless dreary chaotic uninspired deafening amateurish flat uninspiring
bad-phone: slow unreliable defective fragile flimsy sluggish outdated buggy cumbersome"""
# The kinds of noun that an adjective of the group can describe.
DESCRIBED = """
person: profession musician athlete scientist relative
animal: mammal bird
dish: dish
produce: fruit vegetable
text: document book
place: building room
colour: vehicle garment flower toy
thing: vehicle boat tool instrument garment device toy furniture jewel"""
# Parts of a thing that take neither "a" nor a plural.
UNCOUNTED = """acting dialogue cinematography prose style characterisation fish bread staff service
    singing sound lighting design software""".split()
