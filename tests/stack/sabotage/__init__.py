"""Takes one guard away from every process of a stack (SABOTAGE says which): the drill must see it."""
