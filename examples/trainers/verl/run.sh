python3 make_data.py
VERL_USE_EXTERNAL_MODULES=paddock.verl_advantage python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=paddock \
  data.train_files=train.parquet data.val_files=val.parquet \
  data.train_batch_size=8 data.return_raw_chat=true \
  actor_rollout_ref.rollout.mode=async actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.prompt_length=2048 \
  actor_rollout_ref.rollout.response_length=2048 \
  actor_rollout_ref.rollout.calculate_log_probs=true \
  actor_rollout_ref.rollout.agent.default_agent_loop=paddock \
  actor_rollout_ref.rollout.agent.agent_loop_config_path=agent_loop.yaml
