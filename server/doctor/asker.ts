// Asks one endpoint of a backend as episodes do, through the policy client, and beside it the routes by which engines describe themselves.
import { isPlainObject, type JsonObject } from '../../protocol/json.ts'
import type { HttpRequest } from '../../rollout/policy/dialect.ts'
import type { Backend } from '../config.ts'
import { createPolicyBoard } from '../runtime/policy/policy-board.ts'
import { createPolicyClient } from '../runtime/policy/policy-client.ts'
import type { PolicyAnswer } from '../runtime/policy/policy-try.ts'

export interface Asker {
  /** Of the endpoint, without a password. */
  url: string
  /** Never rejects. */
  post(request: HttpRequest): Promise<PolicyAnswer>
  /** The status, and the JSON object where one came; null where nobody answers. */
  get(path: string): Promise<{ status: number; json: JsonObject | null } | null>
}

/** A description of itself comes at once, or the engine is not asked for it. */
const GET_TIMEOUT_MS = 5000

export function createAsker(
  name: string,
  { urls, ...rest }: Backend,
  timeoutMs: number,
  url: string = urls[0] as string,
): Asker {
  const backend: Backend = { ...rest, urls: [url] }
  const unheard = () => {}
  const hooks = {
    backendTry: unheard,
    backendAsked: unheard,
    backendLeftAlone: unheard,
    backendRetry: unheard,
    breaker: unheard,
    retryBudget: unheard,
    firstToken: unheard,
    tokenGap: unheard,
  }
  const { origin, pathname } = new URL(url)
  const base = origin + pathname.replace(/\/(v1\/?)?$/, '')
  const headers = new Headers()
  if (backend.api_key !== undefined) headers.set('authorization', `Bearer ${backend.api_key}`)
  return {
    url: origin + pathname.replace(/\/$/, ''),
    async post(request) {
      // One for each request: no breaker that remembers the last answer keeps the doctor from the next.
      const client = createPolicyClient({ [name]: backend }, createPolicyBoard(), hooks)
      try {
        return await client.ask(
          { ...request, kind: 'policy', backend: name, turn: 0, aborts: 0 },
          performance.now() + timeoutMs,
          new AbortController().signal,
        )
      } finally {
        await client.close()
      }
    },
    async get(path) {
      try {
        const signal = AbortSignal.timeout(Math.min(timeoutMs, GET_TIMEOUT_MS))
        const response = await fetch(base + path, { headers, signal })
        const json: unknown = await response.json().catch(() => null)
        return { status: response.status, json: isPlainObject(json) ? (json as JsonObject) : null }
      } catch {
        return null
      }
    },
  }
}
