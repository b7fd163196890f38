// A policy client by itself, for tests that play the backend's side over real sockets.
import type { PolicyRequest } from '../../rollout/request.ts'
import type { Backend } from '../config.ts'
import { createPolicyBoard, type PolicyBoard } from '../runtime/policy/policy-board.ts'
import {
  createPolicyClient,
  type PolicyClient,
  type PolicyClientHooks,
} from '../runtime/policy/policy-client.ts'

export const backendAt = (urls: string[], some: Partial<Backend> = {}): Backend => ({
  dialect: 'vllm',
  urls,
  model: 'm',
  first_prompt: 'template',
  stream: false,
  weight_info: false,
  cache_salt: true,
  logprobs_mode: 'unknown',
  ...some,
})

/** Without jitter; hears what `hooks` names. */
export function clientOf(
  backends: Record<string, Backend>,
  hooks: Partial<PolicyClientHooks> = {},
  board: PolicyBoard = createPolicyBoard(),
): PolicyClient {
  const deaf: PolicyClientHooks = {
    backendTry() {},
    backendAsked() {},
    backendLeftAlone() {},
    backendRetry() {},
    breaker() {},
    retryBudget() {},
    firstToken() {},
    tokenGap() {},
  }
  return createPolicyClient(backends, board, { ...deaf, ...hooks }, () => 0.5)
}

export const requestTo = (backend: string, some: Partial<PolicyRequest> = {}): PolicyRequest => ({
  kind: 'policy',
  backend,
  turn: 0,
  aborts: 0,
  path: '/v1/chat/completions',
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode('{"model":"m"}'),
  ...some,
})
