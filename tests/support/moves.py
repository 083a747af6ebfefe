"""The moves between states that the tables of `orchestration.states` leave out."""


def illegal_moves(moves):
    """Return every pair of different states that `moves` does not allow."""
    return [
        (before, after)
        for before in moves
        for after in moves
        if before != after and after not in moves[before]
    ]


def legal_moves(moves):
    """Return every pair of states that `moves` allows."""
    return [(before, after) for before in moves for after in moves[before]]
