"""Random numbers without a state: each is a hash of what it is for.

A number is named by (seed, game, episode, round, purpose, counter). So the same name is the same card in
every face, at any batch size, and no deal depends on what was played before it.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.compiled import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
DEALER_STREAM, DEAL_STREAM, POLICY_STREAM, WORLD_STREAM, SEAT_STREAM, OPPONENT_STREAM = range(6)
"""What a random number is for; see `stream`."""


@njit
def mix(value):
    """SplitMix64's finaliser: a bijection of 64 bits that scatters neighbours (Steele, Lea, Flood 2014)."""
    value = value + GOLDEN
    value = (value ^ (value >> np.uint64(30))) * MIX_1
    value = (value ^ (value >> np.uint64(27))) * MIX_2
    return value ^ (value >> np.uint64(31))


@njit
def stream(seed, game, episode, round_index, purpose):
    """The 64-bit name of a random stream; draw `i` of it is ``mix(name ^ i)``.

    Every field is mixed in turn, so that neighbouring games and rounds share nothing.
    """
    name = mix(np.uint64(seed))
    name = mix(name ^ np.uint64(game))
    name = mix(name ^ np.uint64(episode))
    name = mix(name ^ np.uint64(round_index))
    return mix(name ^ np.uint64(purpose))


@njit
def below(name, index, limit):
    """Draw `index` of the stream `name` as an integer in [0, limit), `limit` < 2**31."""
    high_half = mix(name ^ np.uint64(index)) >> np.uint64(32)
    return np.int64((high_half * np.uint64(limit)) >> np.uint64(32))


@njit
def uniform(name, index):
    """Draw `index` of the stream `name` as a float64 in [0, 1)."""
    return np.float64(mix(name ^ np.uint64(index)) >> np.uint64(11)) * (1.0 / (1 << 53))
