# A trainer in plain Python: where `update` prints, yours takes an optimizer step.
from paddock import Client, Row, group_rows

STEPS = 2
TASKS = [{"task": f"arithmetic/sum-{number}"} for number in range(4)]


def update(rows: list[Row]) -> None:
    """One policy-gradient step. Here: the loss that an optimizer would be given."""
    loss, tokens = 0.0, 0
    for row in rows:
        # ids[k] was sampled, and is trained on, exactly where mask[k] is 1.
        for bit, logprob in zip(row.mask, row.logprobs, strict=True):
            if bit:
                loss -= row.advantage * logprob
                tokens += 1
    print(f"  loss {loss / max(tokens, 1):+.4f} over {tokens} tokens of {len(rows)} rows")


client = Client()
print(f"groups come as {client.encoding}")

for step in range(STEPS):
    batch = client.submit(
        {
            "tasks": TASKS,
            "group_size": 8,
            "policy": {"sampling": {"temperature": 1.0, "max_tokens": 512}},
            "reward": {"reads": ["score"]},
            "advantage": {"estimator": "grpo"},
            "groups": {"on_short": "close"},
        }
    )
    with client.groups(batch["id"]) as groups:
        for group in groups:
            stats = group["stats"]
            print(f"step {step} {group['task']}: {group['verdict']}, mean {stats['mean']}")
            # Failed episodes have no row, and the advantages were computed without them.
            update(group_rows(group))
            # The group is acknowledged here, when the loop asks for the next one.
    for lost in client.progress(batch["id"])["groups"]["dropped"]:
        print(f"step {step} {lost['task']}: dropped, {lost['verdict']}: {lost['reason']}")
    # Where yours writes checkpoints: heartbeat(step, checkpoint_step), so that the server knows what is at risk.
    client.heartbeat(step)
