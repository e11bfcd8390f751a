"""Agents that learn, for use from a clone of the repository (torch allowed here).

Importing this package registers the policy name ``checkpoint``: ``checkpoint:runs/demo/best`` is
the agent saved in that folder.
"""

from __future__ import annotations

from cucumber_env.policies import Policy, register


def _checkpoint(path: str | None = None, *, greedy: int = 0) -> Policy:
    """The agent saved at `path`; ``greedy=1`` plays its likeliest action instead of sampling."""
    if path is None:
        raise ValueError("which agent? write checkpoint:FOLDER, such as checkpoint:runs/demo/last")
    if greedy not in (0, 1):
        raise ValueError(f"greedy={greedy!r} is out of range; allowed: 0 or 1")
    from agents.policy import NetworkPolicy  # torch is imported when an agent is loaded, not before

    return NetworkPolicy.load(str(path), greedy=bool(greedy))


register("checkpoint", _checkpoint)
