"""verl: the advantage estimator `paddock`, which takes the server's advantages as they are.

    VERL_USE_EXTERNAL_MODULES=paddock.verl_advantage … algorithm.adv_estimator=paddock

It lives apart from the agent loop because verl imports it while it is itself being imported.
"""

from typing import Any

from verl.trainer.ppo.core_algos import register_adv_est


@register_adv_est("paddock")  # type: ignore[untyped-decorator, unused-ignore]
def spread_scores(token_level_rewards: Any, response_mask: Any, **_: Any) -> tuple[Any, Any]:
    """Each row's score on each of its trained tokens; a failed member has none of them.

    Args:
        token_level_rewards: [rows, response length]; the score stands on one token, as verl puts
            it.
        response_mask: the same shape, 1 on trained tokens.

    Returns:
        advantages and returns, both [rows, response length].
    """
    advantages = token_level_rewards.sum(-1)[..., None] * response_mask
    return advantages, advantages
