"""How the product is installed: an image, manifests and units, and the checks that keep them true.

No process of the product imports anything from here.
"""
