python3 train.py "${MODEL_ARGS[@]}" \
  --rollout-function-path paddock.slime.generate_rollout \
  --custom-reward-post-process-path paddock.slime.post_process_rewards \
  --custom-config-path rollout.yaml \
  --prompt-data prompts.jsonl --input-key prompt --metadata-key metadata \
  --num-rollout 2 --rollout-batch-size 4 --n-samples-per-prompt 8 \
  --rollout-temperature 1 --rollout-max-response-len 512 \
  --advantage-estimator grpo --num-steps-per-rollout 1 --use-tis
