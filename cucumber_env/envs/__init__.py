"""The faces of the game: environments for PettingZoo, Gymnasium and trainers."""
