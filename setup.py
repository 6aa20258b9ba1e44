"""Only what setup.cfg cannot say: two packages from two places (everything else is in setup.cfg)."""

from setuptools import find_packages, setup

setup(
    packages=find_packages(include=["messaging_core", "messaging_core.*"]) + find_packages("adapters"),
    package_dir={"messaging_adapters": "adapters/messaging_adapters"},
)
