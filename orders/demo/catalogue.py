"""What the demo shop sells: its catalogue, as `manage.py seed` puts it into the database."""

from typing import NamedTuple

from django.utils.translation import gettext_noop as _

SHELVES = (_("Coffee"), _("Tea"), _("Brewing"), _("Table"), _("Gifts"))  # as pages call them


class Item(NamedTuple):
    """A product to be; `price` in hundredths of what is about a euro; its picture is named after the SKU."""

    sku: str
    kind: str
    name: str
    price: int
    summary: str
    description: str
    gift_card: bool = False
    released_in_days: int | None = None
    made_within_days: int | None = None


GIFT_CARD, PREORDER, MADE = "gift-card", "gift-harvest", "gift-mug"  # not parcels of goods in stock
GONE = "table-board"  # the shop still shows a few, the warehouse has none: for trying it out
SCARCE, SCARCE_STOCK = "table-jar", {"main": 2, "south": 1}  # the last ones, in two warehouses
REGULAR = "coffee"  # SKUs that begin so can be subscribed to
AWAY, WAREHOUSE = "brew-kettle", "south"  # this is in another warehouse than all else
# SKUs that begin so bear the reduced tax rate
FOOD = ("coffee", "tea", "table-shortbread", PREORDER)
# country, price in hundredths and free from, of what is about a euro
SHIPPING = (("", 990, 100), ("DE", 490, 50))
WELCOME = "WELCOME"  # a discount code

CATALOGUE = (
    Item("coffee-morning", "Coffee", _("Morning House Blend"), 950,
         _("Hazelnut, cocoa, a round cup. 250 g."),
         _("The one we drink ourselves before opening. Beans from Brazil and Guatemala, roasted to a "
           "warm medium brown: little acidity, much comfort, and forgiving of every brewing method.")),
    Item("coffee-yirgacheffe", "Coffee", _("Yirgacheffe, Washed"), 1390,
         _("Jasmine, lemon, black tea. 250 g."),
         _("From smallholders around Yirgacheffe, at two thousand metres. Light, floral and clear; "
           "at its best as pour-over, with water just off the boil and nothing in it.")),
    Item("coffee-huila", "Coffee", _("Huila, Honey Process"), 1280,
         _("Red apple, caramel, long finish. 250 g."),
         _("Dried with some of the fruit still on the bean, and sweet because of it. "
           "A coffee for the afternoon, and for people who say they need sugar.")),
    Item("coffee-espresso", "Coffee", _("Corner Espresso"), 1090,
         _("Dark chocolate, toasted almond. 250 g."),
         _("Roasted a little further, for a thick cup with a hazel crema. Stands up to milk. "
           "Starting point: eighteen grams in, thirty-six out, twenty-eight seconds.")),
    Item("coffee-decaf", "Coffee", _("Quiet Evening Decaf"), 1120,
         _("Brown sugar, orange peel. 250 g."),
         _("Freed of its caffeine with nothing but water, and tasting as if nothing had happened. For "
           "the cup after dinner that should not keep you company until three.")),
    Item("coffee-drip", "Coffee", _("Drip Bags, Box of Ten"), 840,
         _("Filter coffee for trains and tents. 10 bags of 12 g."),
         _("Ground on the day of roasting and sealed one cup at a time. Hang it over a mug, pour "
           "water, wait two minutes. The bag and the box go on the compost.")),
    Item("tea-earl-grey", "Tea", _("Earl Grey with Bergamot"), 720,
         _("Black tea, real bergamot oil. 100 g tin."),
         _("A brisk Ceylon with oil pressed from Calabrian bergamot, and no flavouring that only "
           "sounds like it. Three minutes; four if you take milk.")),
    Item("tea-sencha", "Tea", _("First Flush Sencha"), 1450,
         _("Green, sweet, a little sea air. 80 g tin."),
         _("The first picking of the year, steamed and rolled within hours. Give it water of seventy "
           "degrees and one minute; it will give you three infusions.")),
    Item("tea-oolong", "Tea", _("High Mountain Oolong"), 1580,
         _("Cream, orchid, no hurry. 80 g tin."),
         _("Rolled into small jade pearls that open cup by cup. Between green and black, and better "
           "than an argument about which of the two one likes more.")),
    Item("tea-chai", "Tea", _("Kitchen Chai"), 790,
         _("Assam, cardamom, ginger, pepper. 120 g tin."),
         _("Our own mixture, crushed and not ground. Simmer a spoonful in half milk, half water for "
           "five minutes, sweeten, and stand close to the pot.")),
    Item("tea-rooibos", "Tea", _("Rooibos and Orange"), 640,
         _("Red, mellow, free of caffeine. 100 g tin."),
         _("South African rooibos with orange peel and a little vanilla. Cannot be brewed for too "
           "long, which makes it the tea for people who forget about tea.")),
    Item("tea-mint", "Tea", _("Garden Mint"), 590,
         _("Whole leaves, nothing else. 40 g tin."),
         _("Peppermint and spearmint, cut in June and dried in the shade. Hot after a meal; cold, "
           "with a slice of lemon, instead of one.")),
    Item("brew-kettle", "Brewing", _("Gooseneck Kettle"), 6400,
         _("A slow, exact pour. 0.9 litres."),
         _("Brushed steel with a thin spout that puts the water where you look. Works on gas, "
           "electric and induction; the lid has a window for a thermometer.")),
    Item("brew-dripper", "Brewing", _("Porcelain Dripper"), 2450,
         _("Pour-over for one or two cups."),
         _("A cone of glazed porcelain with spiral ribs, which let the coffee breathe and the water "
           "run evenly. Takes ordinary paper filters of size two.")),
    Item("brew-press", "Brewing", _("French Press"), 3200,
         _("Glass and steel, for four cups. 1 litre."),
         _("Coarse coffee, hot water, four minutes, press. The plunger has a double mesh, so that "
           "the last sip is as good as the first. Every part can be bought singly.")),
    Item("brew-grinder", "Brewing", _("Hand Grinder"), 5800,
         _("Steel burrs, forty clicks, no cable."),
         _("Grinds for two cups in under a minute, from Turkish to French press. The handle folds "
           "away, and the whole thing fits into the sleeve of a jumper.")),
    Item("brew-scale", "Brewing", _("Brewing Scale"), 3900,
         _("Tenths of a gram, and a timer."),
         _("Weighs up to two kilograms and starts the clock by itself when the water comes. Charges "
           "by USB and forgives a spill.")),
    Item("brew-teapot", "Brewing", _("Stoneware Teapot"), 4400,
         _("Thrown by hand, pours clean. 0.8 litres."),
         _("Made in a small pottery, each one a little different. The built-in strainer is wide, so "
           "that the leaves have room, and the spout does not drip. We tried.")),
    Item("table-mug", "Table", _("Speckled Mug"), 1650,
         _("A proper handle. 0.35 litres."),
         _("Cream glaze over dark clay, heavy enough to keep warm and light enough to lift with one "
           "hand on a Monday. Goes into the dishwasher.")),
    Item("table-cups", "Table", _("Espresso Cups, Set of Two"), 1900,
         _("Thick walls, small saucers. 70 ml each."),
         _("Barrel-shaped, so that the crema stays together. Warm them on the machine, or with a "
           "little of the hot water that you have anyway.")),
    Item("table-jar", "Table", _("Storage Jar"), 1400,
         _("Holds 250 g and keeps the air out."),
         _("Glass with a lid of beech and a silicone ring. For beans, leaves, or the good biscuits "
           "that are not supposed to be found.")),
    Item("table-board", "Table", _("Oak Bread Board"), 2800,
         _("One piece of oak, oiled. 40 by 22 cm."),
         _("Cut from a single plank, so there is no glue to give way. A groove for crumbs on one "
           "side, and a plain face for serving on the other.")),
    Item("table-towel", "Table", _("Linen Tea Towel"), 1200,
         _("Washed linen, with a loop. 50 by 70 cm."),
         _("Dries glasses without a trace and gets softer with every wash. Woven in a narrow stripe "
           "that has been the same for a hundred years.")),
    Item("table-shortbread", "Table", _("Butter Shortbread"), 680,
         _("Five ingredients, baked on Tuesdays. 200 g."),
         _("Flour, butter, sugar, rice flour, salt. Snaps, then melts. Keeps for six weeks, in "
           "theory.")),
    Item(GIFT_CARD, "Gifts", _("Gift Card"), 2500,
         _("For anything here, at once or in parts."),
         _("For someone whose taste you do not want to guess. The code comes by e-mail once it is paid, "
           "and pays at the checkout: at once, or a little at a time."), gift_card=True),
    Item(PREORDER, "Gifts", _("Harvest Box"), 3600,
         _("Three coffees of the new harvest. 3 by 250 g."),
         _("The beans are at sea. Order a box now, and it is packed for you the morning they have been "
           "roasted; it is paid then, and not before."), released_in_days=30),
    Item(MADE, "Gifts", _("Mug with Your Initials"), 2900,
         _("Thrown and engraved for you. 0.35 litres."),
         _("Our potter throws it when you order it, cuts up to three letters into the clay, and fires it "
           "twice. That takes some days, and shows."), made_within_days=14),
)  # fmt: skip
