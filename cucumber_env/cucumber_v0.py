"""Cucumber for PettingZoo: the AEC environment `env`, and `raw_env` without the checks of how it is used.

>>> from cucumber_env import cucumber_v0
>>> env = cucumber_v0.env(rules="cucumber", num_players=4)
>>> env.reset(seed=42)
>>> for agent in env.agent_iter():
...     observation, reward, terminated, truncated, info = env.last()
...     action = None
...     if not (terminated or truncated):
...         action = env.action_space(agent).sample(observation["action_mask"])
...     env.step(action)
>>> env.close()

``pettingzoo.make("aec", "cucumber_env/cucumber-v0", ...)`` makes the same environment once `cucumber_env` is imported.

============  ======================================================================================================
Agents        ``player_0`` … ``player_7``, the seats, clockwise; 2 to 8 by the rules. One agent acts at a time.
Observation   ``Dict(observation=Box(0, 1, (W,), int8), action_mask=Box(0, 1, (A,), int8))``
Action        ``Discrete(13)``: play rank 2 … A. ``Discrete(23)`` if the rules have other decisions: 13–19 deal 1–7
              cards, 20 decline a revival, 21 come back by a chip, 22 come back after skipping a round.
Reward        ``outcome`` (matches), ``zero_sum`` (rounds) or ``points``; `reward_range` bounds an episode's sum.
State         `state()`, ``Box(0, 1, (S,), int8)``, with all hands: for central critics alone.
============  ======================================================================================================

Arguments
    All are keywords; see `CucumberAEC` for each. ``rules`` is a preset's name, a `Rules` or a mapping of fields.
    ``episode`` is a whole ``"match"`` or a single ``"round"``.

Observation
    Binary, seen from the agent's seat: its hand, the cards that are unseen, the table, what the others can still hold,
    and in matches the standing. ``env.layout`` says which number means what, names the parts
    (``env.layout.views(observation["observation"])``) and writes one out (``env.layout.explain(...)``). Any agent may
    be observed at any time. ``env.information_state(agent)`` adds its deal and all that was played in the round.

Mask
    ``observation["action_mask"]``, and the same in ``infos[agent]["action_mask"]``, the only key there: int8, all zeros
    for every agent that is not to move. Whoever takes a trick leads the next one, so an agent may act twice running.

Opponents
    ``env.turns()`` is the decision that is due as the policies of this package take it:
    ``env.step(policies.make("highest").act(env.turns())[0])``.

Rewards
    They come when a round is settled (last tricks alone cost points), so mostly on other agents' moves: take them from
    `last` or add up `rewards`.

    ``points``
        Minus the penalty points that the agent pays.
    ``zero_sum``
        That plus the mean penalty of the other seats in the round. Every round sums to zero.
    ``outcome``
        For matches. +1 to the winner, −1/(n−1) to each of the others; under ``first_out_loses`` the losers share −1 and
        the others +1. Every match sums to zero, unless it is truncated: that pays nothing to those in the
        episode until then (under ``"wait"`` everybody).

    Sudden death settles places, not points. ``chip_cost`` is what coming back by a chip costs on top of all this, paid
    to nobody.

End of the episode
    When the round is played or the match decided, all agents terminate. A player who is out before that stays in
    `agents`, unselected, and terminates with the rest (``elimination="wait"``, which trainers cope with more easily).
    With ``"remove"`` the agent terminates as soon as it is out for good (no revival open, no sudden death left to it),
    is paid its −1/(n−1) under ``outcome`` then, and leaves: rewards sum to zero over the episode, not in each step.
    ``max_rounds`` truncates a match after so many rounds. No agent is ever both terminated and truncated.

Illegal actions
    `raw_env` refuses them with an error that names the legal ones; nothing has been played then. In `env` they end the
    episode: the offender's rewards of the episode are brought down to the least of `reward_range`, the others share the
    difference. See `CheckedCucumberAEC` for where that departs from PettingZoo's wrappers, which `env` needs none of.

Randomness
    ``reset(seed=s)`` begins episode 0 of game 0 under seed s, ``reset()`` the next episode: the same cards as in every
    other face of the game, whatever is played. ``env.key`` names them. A pickled or deep-copied environment continues
    the same game; `clone_state` and `restore_state` do so within one, quickly.

Rendering
    ``ansi`` returns text, ``human`` prints it after every reset and step: the table as the seat to move sees it.

Version history
    v0: first version. The number goes up whenever results of learning could change.
"""

from __future__ import annotations

from cucumber_env.envs.aec import CucumberAEC
from cucumber_env.envs.aec_checked import CheckedCucumberAEC

__all__ = ["env", "raw_env"]

env = CheckedCucumberAEC
raw_env = CucumberAEC
