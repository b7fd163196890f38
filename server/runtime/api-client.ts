// A small client of the native API for our own programs: what a trainer would do, over HTTP.
import type { BatchAccepted, BatchProgress } from '../../protocol/batch.ts'
import { PaddockError, type Problem } from '../../protocol/errors.ts'
import type { AckResult, DeliveredGroup } from '../../protocol/group.ts'
import type { EvaluationReport } from '../../reward/evaluation.ts'
import type { ExplainedGroup } from './batches/explain-record.ts'

export interface ApiClient {
  submit(request: unknown): Promise<BatchAccepted>
  progress(batch: string): Promise<BatchProgress>
  explain(group: string): Promise<ExplainedGroup>
  resume(batch: string): Promise<BatchProgress>
  /** `query` without its question mark. */
  evaluation(batch: string, query: string): Promise<EvaluationReport>
  lease(batch: string, request: unknown): Promise<{ groups: DeliveredGroup[]; done: boolean }>
  ack(
    batch: string,
    groups: readonly DeliveredGroup[],
  ): Promise<{ groups: { id: string; result: AckResult }[] }>
  tasks(pack?: string): Promise<{ tasks: { id: string; pack: string; title: string }[] }>
}

/**
 * Every answer of 400 and above is thrown as an Error with the problem's own sentence; where nobody answers, or somebody
 * else, PaddockError `internal`.
 */
export function createApiClient(url: string, token?: string): ApiClient {
  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await answerOf(url, path, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = await jsonOf(response, url)
    if (!response.ok) {
      const { detail, path: at } = answer as Problem
      throw new Error(`${method} ${path}: ${response.status} ${at ? `${at}: ` : ''}${detail}`)
    }
    return answer as T
  }

  return {
    submit: (request) => call('POST', '/v1/batches', request),
    progress: (batch) => call('GET', `/v1/batches/${batch}`),
    evaluation: (batch, query) => call('GET', `/v1/batches/${batch}/evaluation?${query}`),
    explain: (group) => call('GET', `/v1/groups/${group}/explain`),
    resume: (batch) => call('POST', `/v1/batches/${batch}/resume`),
    lease: (batch, request) => call('POST', `/v1/batches/${batch}/lease`, request),
    ack: (batch, groups) =>
      call('POST', `/v1/batches/${batch}/ack`, {
        groups: groups.map(({ id, lease }) => ({ id, lease: lease.id })),
      }),
    tasks: (pack) => call('GET', `/v1/tasks${pack ? `?pack=${pack}` : ''}`),
  }
}

async function answerOf(url: string, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(`${url}${path}`, init)
  } catch (error) {
    const { cause = error } = error as Error
    throw new PaddockError(
      'internal',
      `no server answers at ${url} (${(cause as Error).message}); start one with paddock serve, or name yours with --url`,
      { cause },
    )
  }
}

async function jsonOf(response: Response, url: string): Promise<unknown> {
  try {
    return await response.json()
  } catch (cause) {
    throw new PaddockError(
      'internal',
      `expected a Paddock at ${url}, got an answer of status ${response.status} that is no JSON; name yours with --url`,
      { cause },
    )
  }
}
