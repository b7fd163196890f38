# Rows that name what to play; the server has the prompts.
from datasets import Dataset


def rows(numbers, evaluates):
    return [
        {
            "data_source": "paddock",
            "prompt": [{"role": "user", "content": f"sum {number}"}],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {
                "index": number,
                "paddock": {"task": f"arithmetic/sum-{number}"},
                "paddock_eval": evaluates,
            },
        }
        for number in numbers
    ]


Dataset.from_list(rows(range(8), False)).to_parquet("train.parquet")
Dataset.from_list(rows(range(8, 10), True)).to_parquet("val.parquet")
