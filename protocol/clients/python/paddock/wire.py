"""What the server sends, as types; `/docs` of the server describes every field."""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

Outcome = Literal[
    "ok",
    "ok_truncated",
    "aborted",
    "timeout",
    "contract_violation",
    "verifier_error",
    "parse_error",
    "infra_backend",
    "infra_worker",
    "infra_env",
    "infra_tool",
    "infra_store",
]

AckResult = Literal["acked", "late", "unknown", "duplicate", "nacked"]


class VersionSpan(TypedDict):
    """Sampled ids `[start, end)` of one policy version; None where the backend told none."""

    version: int | None
    start: int
    end: int
    approximate: NotRequired[bool]


class Sample(TypedDict):
    """One unbroken token chain: lists of one length, or numpy arrays (Client.encoding)."""

    ids: Sequence[int]
    mask: Sequence[int]
    logprobs: Sequence[float]
    prompt_length: int
    versions: list[VersionSpan]


class Turn(TypedDict):
    """A turn's sampled ids are `[start, end)` of sample `sample`; None if no ids are known."""

    sample: int | None
    start: int
    end: int
    advantage: float | None
    anchor: str


class TurnCounts(TypedDict):
    """In how many turns each refusal, flag and lenient reading of the parser occurred; chains cut, by cause."""

    parse_errors: dict[str, int]
    parse_flags: dict[str, int]
    parse_leniencies: dict[str, int]
    control_tokens: int
    text_mismatches: int
    drift: dict[str, int]


class ShapingStep(TypedDict):
    """One step from what was graded to the reward that counts; the keys are those of its kind."""

    kind: Literal["condition", "overlong", "length"]
    component: NotRequired[str]
    requires: NotRequired[str]
    at_least: NotRequired[float]
    raw: NotRequired[float]
    counted: NotRequired[float]
    length: NotRequired[int]
    penalty: NotRequired[float]


class EpisodeSeconds(TypedDict):
    """Wall seconds of the attempt that counts, by what it waited for."""

    queued: float
    reset: float
    turns: float
    grading: float


class Episode(TypedDict):
    """A member of a group. `reward` is a number exactly when `outcome` is ok or ok_truncated."""

    id: str
    index: int
    attempt: int
    outcome: Outcome
    reason: str | None
    reward: float | None
    rewards: dict[str, float | None] | None
    shaping: list[ShapingStep]
    advantage: float | None
    counts: TurnCounts
    turns: list[Turn]
    seconds: EpisodeSeconds | None
    grade: dict[str, Any] | None
    samples: list[Sample]


class Lease(TypedDict):
    """Acknowledge the group before `expires_in_s` seconds are over, or it is delivered again."""

    id: str
    expires_in_s: float
    delivery: int


class LossNormalizer(TypedDict):
    """What the trainer's loss divides by; `value` in tokens, None where the trainer counts its own."""

    kind: Literal["constant", "tokens_in_sample", "tokens_in_batch"]
    value: float | None


class WhitenedSet(TypedDict):
    """Over which groups the advantages were whitened: how many, and the first of them."""

    over: Literal["batch", "window"]
    groups: int
    first: str
    mean: float | None
    std: float | None


class ComponentStats(TypedDict):
    """Of one reward component over the scored episodes; `flat` where no two differ."""

    mean: float | None
    std: float | None
    flat: bool


class AskedCost(TypedDict):
    """What was asked of one other than the policy; `kept` answers were not asked for again."""

    requests: int
    kept: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


class GroupPolicy(TypedDict):
    """Who played: the model, and the oldest and newest version among the sampled tokens."""

    model: str | None
    version_min: int | None
    version_max: int | None
    logprobs_mode: Literal["raw", "processed", "unknown"]


class GroupStats(TypedDict):
    """Over the scored episodes; `std` is the population's. None where none is scored."""

    n: int
    scored: int
    mean: float | None
    std: float | None
    distinct: int
    components: dict[str, ComponentStats]
    shared_anchor_share: float | None


class GroupCost(TypedDict):
    """Over all attempts of the group; `seconds` of policy requests, `asked`: what others cost."""

    prompt_tokens: int
    completion_tokens: int
    seconds: float
    asked: NotRequired[dict[Literal["user", "judge", "grade", "reward"], AskedCost]]


class Group(TypedDict):
    """A finished group: the episodes of one task under one policy and one reward contract."""

    id: str
    lease: Lease
    batch: str
    task: str
    seed: int
    metadata: dict[str, Any]
    verdict: str
    level: str | None
    contract: str
    estimator: str
    loss_normalizer: LossNormalizer
    whitened: WhitenedSet | None
    policy: GroupPolicy
    stats: GroupStats
    cost: GroupCost
    counts: TurnCounts
    greedy_suspect: bool
    episodes: list[Episode]


class LeaseAnswer(TypedDict):
    """`done`: nothing of the batch is running, ready or leased any more."""

    groups: list[Group]
    done: bool


class BatchAccepted(TypedDict):
    """What was admitted."""

    id: str
    groups: int
    episodes: int


class PolicyState(TypedDict):
    """What the server knows of a backend; `previous` is the version before `version`."""

    backend: str
    version: int | None
    previous: int | None
    epoch: int
    paused: bool
