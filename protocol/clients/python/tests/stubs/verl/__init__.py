"""The parts of verl that the adapter meets, with the fields and rules of its sources."""

import importlib
import os

# As verl/__init__.py: the place where a user's own estimators are registered.
for _name in filter(None, os.getenv("VERL_USE_EXTERNAL_MODULES", "").split(",")):
    importlib.import_module(_name)
