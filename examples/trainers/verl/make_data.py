# Rows that name what to play; the server has the prompts.
from datasets import Dataset


def rows(numbers):
    return [
        {
            "data_source": "paddock",
            "prompt": [{"role": "user", "content": f"sum {number}"}],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": number, "paddock": {"task": f"arithmetic/sum-{number}"}},
        }
        for number in numbers
    ]


Dataset.from_list(rows(range(8))).to_parquet("train.parquet")
Dataset.from_list(rows(range(8, 10))).to_parquet("val.parquet")
