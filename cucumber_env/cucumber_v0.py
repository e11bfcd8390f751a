"""PettingZoo module: placeholder."""

from cucumber_env.envs.aec import CucumberAEC as raw_env
from cucumber_env.envs.aec_checked import CheckedCucumberAEC as env
