"""verl's registry of advantage estimators (verl/trainer/ppo/core_algos.py)."""

from collections.abc import Callable
from typing import Any

ADV_ESTIMATOR_REGISTRY: dict[str, Any] = {}


def register_adv_est(name: str) -> Callable[[Any], Any]:
    def decorator(estimator: Any) -> Any:
        ADV_ESTIMATOR_REGISTRY[name] = estimator
        return estimator

    return decorator


def get_adv_estimator_fn(name: str) -> Any:
    if name not in ADV_ESTIMATOR_REGISTRY:
        raise ValueError(f"Unknown advantage estimator: {name}")
    return ADV_ESTIMATOR_REGISTRY[name]
