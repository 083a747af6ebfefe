"""What the demo shop sells: its catalogue, as `manage.py seed` puts it into the database."""

from typing import NamedTuple

from django.utils.translation import gettext_noop as _

SHELVES = (_("Coffee"), _("Tea"), _("Brewing"), _("Table"))  # as pages call them


class Item(NamedTuple):
    """A product to be; `price` in cents; its picture is named after the SKU."""

    sku: str
    kind: str
    name: str
    price: int
    summary: str
    description: str


GONE = "table-board"  # the shop still shows a few, the warehouse has none: for trying it out

CATALOGUE = (
    Item("coffee-morning", "Coffee", "Morning House Blend", 950,
         "Hazelnut, cocoa, a round cup. 250 g.",
         "The one we drink ourselves before opening. Beans from Brazil and Guatemala, roasted to a "
         "warm medium brown: little acidity, much comfort, and forgiving of every brewing method."),
    Item("coffee-yirgacheffe", "Coffee", "Yirgacheffe, Washed", 1390,
         "Jasmine, lemon, black tea. 250 g.",
         "From smallholders around Yirgacheffe, at two thousand metres. Light, floral and clear; "
         "at its best as pour-over, with water just off the boil and nothing in it."),
    Item("coffee-huila", "Coffee", "Huila, Honey Process", 1280,
         "Red apple, caramel, long finish. 250 g.",
         "Dried with some of the fruit still on the bean, and sweet because of it. "
         "A coffee for the afternoon, and for people who say they need sugar."),
    Item("coffee-espresso", "Coffee", "Corner Espresso", 1090,
         "Dark chocolate, toasted almond. 250 g.",
         "Roasted a little further, for a thick cup with a hazel crema. Stands up to milk. "
         "Starting point: eighteen grams in, thirty-six out, twenty-eight seconds."),
    Item("coffee-decaf", "Coffee", "Quiet Evening Decaf", 1120,
         "Brown sugar, orange peel. 250 g.",
         "Freed of its caffeine with nothing but water, and tasting as if nobody had. For the cup "
         "after dinner that should not keep you company until three."),
    Item("coffee-drip", "Coffee", "Drip Bags, Box of Ten", 840,
         "Filter coffee for trains and tents. 10 bags of 12 g.",
         "Ground on the day of roasting and sealed one cup at a time. Hang it over a mug, pour "
         "water, wait two minutes. The bag and the box go on the compost."),
    Item("tea-earl-grey", "Tea", "Earl Grey with Bergamot", 720,
         "Black tea, real bergamot oil. 100 g tin.",
         "A brisk Ceylon with oil pressed from Calabrian bergamot, and no flavouring that only "
         "sounds like it. Three minutes; four if you take milk."),
    Item("tea-sencha", "Tea", "First Flush Sencha", 1450,
         "Green, sweet, a little sea air. 80 g tin.",
         "The first picking of the year, steamed and rolled within hours. Give it water of seventy "
         "degrees and one minute; it will give you three infusions."),
    Item("tea-oolong", "Tea", "High Mountain Oolong", 1580,
         "Cream, orchid, no hurry. 80 g tin.",
         "Rolled into small jade pearls that open cup by cup. Between green and black, and better "
         "than an argument about which of the two one likes more."),
    Item("tea-chai", "Tea", "Kitchen Chai", 790,
         "Assam, cardamom, ginger, pepper. 120 g tin.",
         "Our own mixture, crushed and not ground. Simmer a spoonful in half milk, half water for "
         "five minutes, sweeten, and stand close to the pot."),
    Item("tea-rooibos", "Tea", "Rooibos and Orange", 640,
         "Red, mellow, free of caffeine. 100 g tin.",
         "South African rooibos with orange peel and a little vanilla. Cannot be brewed for too "
         "long, which makes it the tea for whoever forgets about tea."),
    Item("tea-mint", "Tea", "Garden Mint", 590,
         "Whole leaves, nothing else. 40 g tin.",
         "Peppermint and spearmint, cut in June and dried in the shade. Hot after a meal; cold, "
         "with a slice of lemon, instead of one."),
    Item("brew-kettle", "Brewing", "Gooseneck Kettle", 6400,
         "A slow, exact pour. 0.9 litres.",
         "Brushed steel with a thin spout that puts the water where you look. Works on gas, "
         "electric and induction; the lid has a window for a thermometer."),
    Item("brew-dripper", "Brewing", "Porcelain Dripper", 2450,
         "Pour-over for one or two cups.",
         "A cone of glazed porcelain with spiral ribs, which let the coffee breathe and the water "
         "run evenly. Takes ordinary paper filters of size two."),
    Item("brew-press", "Brewing", "French Press", 3200,
         "Glass and steel, for four cups. 1 litre.",
         "Coarse coffee, hot water, four minutes, press. The plunger has a double mesh, so that "
         "the last sip is as good as the first. Every part can be bought singly."),
    Item("brew-grinder", "Brewing", "Hand Grinder", 5800,
         "Steel burrs, forty clicks, no cable.",
         "Grinds for two cups in under a minute, from Turkish to French press. The handle folds "
         "away, and the whole thing fits into the sleeve of a jumper."),
    Item("brew-scale", "Brewing", "Brewing Scale", 3900,
         "Tenths of a gram, and a timer.",
         "Weighs up to two kilograms and starts the clock by itself when the water comes. Charges "
         "by USB and forgives a spill."),
    Item("brew-teapot", "Brewing", "Stoneware Teapot", 4400,
         "Thrown by hand, pours clean. 0.8 litres.",
         "Made in a small pottery, each one a little different. The built-in strainer is wide, so "
         "that the leaves have room, and the spout does not drip. We tried."),
    Item("table-mug", "Table", "Speckled Mug", 1650,
         "A proper handle. 0.35 litres.",
         "Cream glaze over dark clay, heavy enough to keep warm and light enough to lift with one "
         "hand on a Monday. Goes into the dishwasher."),
    Item("table-cups", "Table", "Espresso Cups, Set of Two", 1900,
         "Thick walls, small saucers. 70 ml each.",
         "Barrel-shaped, so that the crema stays together. Warm them on the machine, or with a "
         "little of the hot water that you have anyway."),
    Item("table-jar", "Table", "Storage Jar", 1400,
         "Holds 250 g and keeps the air out.",
         "Glass with a lid of beech and a silicone ring. For beans, leaves, or the good biscuits "
         "that nobody is supposed to find."),
    Item("table-board", "Table", "Oak Bread Board", 2800,
         "One piece of oak, oiled. 40 by 22 cm.",
         "Cut from a single plank, so there is no glue to give way. A groove for crumbs on one "
         "side, and a plain face for serving on the other."),
    Item("table-towel", "Table", "Linen Tea Towel", 1200,
         "Washed linen, with a loop. 50 by 70 cm.",
         "Dries glasses without a trace and gets softer with every wash. Woven in a narrow stripe "
         "that has been the same for a hundred years."),
    Item("table-shortbread", "Table", "Butter Shortbread", 680,
         "Five ingredients, baked on Tuesdays. 200 g.",
         "Flour, butter, sugar, rice flour, salt. Snaps, then melts. Keeps for six weeks, in "
         "theory."),
)  # fmt: skip
