"""The faces of the game: environments for PettingZoo, Gymnasium and trainers."""

RENDER_MODES = ("human", "ansi")
"""What every face can render: text printed, or text returned."""
