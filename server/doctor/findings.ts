// Everything that the doctor can find: why it matters, and how it is mended. docs/doctor.md shows this table.

interface FindingText {
  why: string
  mend: string
}

export const FINDINGS = {
  endpoint_dead: {
    why: 'Every episode would end as infra_backend.',
    mend: 'Start the engine, or correct the backend’s url.',
  },
  endpoint_silent: {
    why: 'The web server answers and the engine does not: a health check stays green while no token comes.',
    mend: 'Look into the engine’s own log, restart it, or give --timeout more seconds.',
  },
  endpoint_refuses: {
    why: 'Every episode would end as infra_backend.',
    mend: 'Do what the answer says, or look into the engine’s log; for 401 and 403 set the backend’s api_key_env.',
  },
  model_unknown: {
    why: 'The engine refuses requests for a model that it does not serve.',
    mend: 'Set the backend’s model to a name that the engine serves.',
  },
  other_dialect: {
    why: 'The engine does not have the route that this dialect asks.',
    mend: 'Set the backend’s dialect to the engine’s (vllm, vllm-generate or sglang), or use a release that has the route.',
  },
  reply_broken: {
    why: 'A reply that breaks its form makes the episode a contract_violation, without a reward.',
    mend: 'Use an engine release that is known to work, and set the backend’s dialect and model_dir to it.',
  },
  no_token_ids: {
    why: 'Without the sampled ids there is no tape: text that is tokenised again trains what was never sampled.',
    mend: 'vLLM 0.10.2 or later, SGLang 0.5.13 or later for chat; keep gateways from dropping the field.',
  },
  no_logprobs: {
    why: 'Without the sampled log-probabilities no importance ratio can be made.',
    mend: 'Use an engine release that returns them, and keep gateways from dropping the field.',
  },
  lengths_differ: {
    why: 'Ids, log-probabilities and counts that disagree in length cannot be put side by side; padding would be a guess.',
    mend: 'Take the engine’s parsers and any gateway away, and use another release.',
  },
  raw_logprobs: {
    why: 'The values were taken before the temperature: away from temperature 1 importance ratios are wrong, and no division corrects them.',
    mend: 'vLLM: --logprobs-mode processed_logprobs. Or train at temperature 1 and say so: logprobs_mode: raw.',
  },
  logprobs_mode_differs: {
    why: 'The mode is recorded with every group, and a trainer believes it.',
    mend: 'Set the backend’s logprobs_mode to what was found.',
  },
  no_version: {
    why: 'Without the weights’ version the staleness of a sample is unknown.',
    mend: 'Let the trainer tell the engine (vLLM: /update_weight_version, SGLang: the same) or us: POST /v1/policy {"version": …}.',
  },
  temperature_ignored: {
    why: 'Every episode of a group would say the same: no variance, no advantage, no gradient.',
    mend: 'Look for a generation config or a gateway that overrides the temperature (vLLM: --generation-config vllm).',
  },
  seed_ignored: {
    why: 'An episode cannot be played again as it was, and two attempts may be the same one.',
    mend: 'SGLang: --enable-deterministic-inference; vLLM: remove what overrides the request’s seed.',
  },
  other_tool_format: {
    why: 'Calls in another form than the one that is read are no calls: every reward would be that of a policy that does nothing.',
    mend: 'Set the backend’s tool_format to what was found.',
  },
  tags_eaten: {
    why: 'The engine’s own parser takes markup out of the answer: what is read and trained is not what was sampled.',
    mend: 'Start the engine without --tool-call-parser, --enable-auto-tool-choice and --reasoning-parser.',
  },
  tools_missing: {
    why: 'A policy that is not shown its tools cannot call them, and nothing fails but the rewards.',
    mend: 'Give the engine a chat template that lists tools (--chat-template), or use mode tokens with model_dir.',
  },
  thinking_unsaid: {
    why: 'Thoughts are read as part of the answer: a call that is only thought of is made, and users read along.',
    mend: 'Set the backend’s thinking to auto (or prefilled, where the template opens <think>).',
  },
  reasoning_dropped: {
    why: 'The next prompt lacks what the policy thought: the token chain is cut there, and the turns train apart.',
    mend: 'Use mode tokens, which keeps what was sampled, or a chat template that keeps reasoning.',
  },
  prompt_drift: {
    why: 'A prompt that does not begin with what was sampled cuts the token chain: its turns train apart.',
    mend: 'Use mode tokens, which never renders again; the causes are those of drift_cause in docs/metrics.md.',
  },
  round_trip: {
    why: 'What a call says changes on its way: the policy is shown another history than its own.',
    mend: 'Compare the chat template with the backend’s tool_format; use the files of the model that is served.',
  },
  context_short: {
    why: 'Long episodes would be cut off by the engine instead of by their limits.',
    mend: 'Start the engine with a larger --max-model-len (SGLang: --context-length), or lower limits.max_tokens.',
  },
  clock_skew: {
    why: 'Logs and metrics of the two machines cannot be put side by side, and Retry-After dates are misread.',
    mend: 'Run NTP on both machines (timedatectl set-ntp true).',
  },
  pack_refused: {
    why: 'Tasks that fail the gate are left out, or keep the server from starting (strict_packs).',
    mend: 'Run paddock validate on the pack: it names rule, path and what to change.',
  },
  contract_mismatch: {
    why: 'The trainer would be refused when it submits its first batch.',
    mend: 'Let it read fields of the contract, or rename one: reward.rename.',
  },
  ledger_broken: {
    why: 'What is sampled would be lost with the process.',
    mend: 'Set ledger.path to a folder on a local disk that may be written.',
  },
  ledger_full: {
    why: 'Below ledger.min_free_bytes new batches are answered 429.',
    mend: 'Free space, or set ledger.path to another disk.',
  },
  episodes_fail: {
    why: 'Episodes that end without a reward cost GPU time and train nothing.',
    mend: 'Mend the cause that is named; the table “What ends how” in README.md has each outcome.',
  },
} as const satisfies Record<string, FindingText>

export type FindingCode = keyof typeof FINDINGS

/** How one check came out; `what` is about this backend, the rest stands in `FINDINGS`. */
export type Verdict =
  | { status: 'healthy' | 'not_checked'; detail: string }
  | { status: 'finding'; code: FindingCode; what: string }

export const healthy = (detail: string): Verdict => ({ status: 'healthy', detail })
export const notChecked = (detail: string): Verdict => ({ status: 'not_checked', detail })
export const found = (code: FindingCode, what: string): Verdict => ({
  status: 'finding',
  code,
  what,
})
