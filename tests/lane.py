"""Plays a little of everything compiled and prints a digest of every byte that comes out.

Run by tests/test_lanes.py with the JIT on, off, and with checked indices: all must print the same line.
"""

from __future__ import annotations

import hashlib
import sys
import warnings

import numpy as np

from cucumber_env import baselines, cucumber_v0, policies
from cucumber_env.compiled import config
from cucumber_env.determinise import worlds
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.exact import deviation, exploitability, solve
from cucumber_env.rules import Rules

TABLES = [
    (Rules(hand_size=3, threshold=20), 4, "match"),
    (Rules.preset("concombre", threshold=15), 8, "match"),
    (Rules(revival="choice", threshold=5, hand_size=2, payer="non_winners", tie="all"), 5, "match"),
    (Rules(), 3, "round"),
    (Rules(end="fixed_rounds", threshold=None, rounds=2, hand_size=2, payer="lowest", penalty="own"), 3, "match"),
]


def play(rules: Rules, num_players: int, episode: str, *, steps: int, digest: hashlib._Hash) -> None:
    """Two games side by side at random, all seats looked at, two worlds drawn for each."""
    for seats in (None, 8):
        table = SelfPlay(rules, num_games=2, num_players=num_players, episode=episode, seats=seats)
        at = table.reset(seed=7)
        for _ in range(steps):
            for out in (table.games, at.observation, at.mask, at.rewards, at.turn, at.done):
                digest.update(np.ascontiguousarray(out).tobytes())
            turns = table.turns()
            digest.update(turns.observe(history=True).tobytes())
            digest.update(worlds(rules, turns.views, count=2, keys=np.arange(2, dtype=np.uint64)).tobytes())
            actions = policies.make("random").act(turns)
            for name in sorted(baselines.BASELINES):
                digest.update(np.asarray(policies.make(name).act(turns), np.int64).tobytes())
            at = table.step(actions)


def play_aec(rules: Rules, num_players: int, episode: str, *, steps: int, digest: hashlib._Hash) -> None:
    """One table of the AEC face at random, all seats and the global state looked at."""
    env = cucumber_v0.env(rules=rules, num_players=num_players, episode=episode, elimination="remove")
    env.reset(seed=7)
    for agent in env.agent_iter(steps):
        dead = env.terminations[agent]
        env.step(None if dead else policies.make("random").act(env.turns())[0])
        digest.update(env.state().tobytes())
        digest.update(str(env.rewards if env.agents else env.reset()).encode())
        for other in env.possible_agents:
            digest.update(env.information_state(other).tobytes())
            digest.update(b"".join(array.tobytes() for array in env.observe(other).values()))


def measure(digest: hashlib._Hash) -> None:
    """A tiny round for two, measured and solved; one for three, measured."""
    rules = Rules(hand_size=3, ranks="9TA", copies=2, follow="may", order="value", points="face_10")
    policy, report = solve(rules, iterations=4, nash_conv=0)
    three = deviation(rules.replace(hand_size=2), "random", 3)
    for found in (report, exploitability(rules, "random"), exploitability(rules, policy), three):
        digest.update(repr((found.values, found.best_response, found.baselines, found.information_states)).encode())


def main() -> None:
    """Print the digest and what kind of code made it."""
    if config.DISABLE_JIT:
        np.seterr(over="ignore")  # hashes wrap round, which plain Python warns about
    warnings.simplefilter("error")
    steps = int(sys.argv[1])
    digest = hashlib.sha256()
    for rules, num_players, episode in TABLES:
        play(rules, num_players, episode, steps=steps, digest=digest)
        play_aec(rules, num_players, episode, steps=8 * steps, digest=digest)
    measure(digest)
    print(digest.hexdigest(), f"jit={not config.DISABLE_JIT}", f"boundscheck={config.BOUNDSCHECK}")


if __name__ == "__main__":
    main()
