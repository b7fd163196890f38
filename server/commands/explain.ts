// `paddock explain`: why each advantage of a group is what it is, from a server or from a file that was leased.
import { readFile } from 'node:fs/promises'
import { PaddockError } from '../../protocol/errors.ts'
import { figure, signed } from '../../protocol/figure.js'
import type { DeliveredGroup } from '../../protocol/group.ts'
import { isPlainObject } from '../../protocol/json.ts'
import { createApiClient } from '../runtime/api-client.ts'
import { type ExplainedGroup, explainRecord } from '../runtime/batches/explain-record.ts'
import type { Streams } from './streams.ts'
import { table } from './table.ts'

export interface ExplainOptions {
  url: string
  token?: string | undefined
  json?: true | undefined
}

/** `what` is the id of a finished group, or a file with a delivered group or the answer of a lease. */
export async function explain(
  what: string,
  { url, token, json }: ExplainOptions,
  { stdout }: Pick<Streams, 'stdout'> = process,
): Promise<void> {
  const groups = /\.json$/.test(what)
    ? groupsIn(what, await readFile(what, 'utf8'))
    : [await createApiClient(url, token).explain(what)]
  for (const group of groups)
    stdout.write(json ? `${JSON.stringify(group)}\n` : `${explainedText(group)}\n`)
}

function groupsIn(file: string, text: string): ExplainedGroup[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new PaddockError('malformed_json', `${file}: ${(cause as Error).message}`, { cause })
  }
  const groups = isPlainObject(value) && Array.isArray(value.groups) ? value.groups : [value]
  return groups.map((group) => {
    if (!isPlainObject(group) || !Array.isArray(group.episodes) || !isPlainObject(group.stats))
      throw new PaddockError(
        'invalid_request',
        `${file}: expected a delivered group, or {groups} as a lease answers; save one with POST /v1/batches/ID/lease`,
      )
    const { episodes, ...head } = group as unknown as DeliveredGroup
    return explainRecord({ head, episodes })
  })
}

function explainedText({ id, task, verdict, level, ...group }: ExplainedGroup): string {
  const { stats, explanation, members } = group
  const parts = [
    `${id}: ${level ? `${verdict} (${level})` : verdict}`,
    `${task}, contract ${group.contract}, estimator ${group.estimator}`,
    `${stats.scored} of ${stats.n} episodes are scored, mean ${figure(stats.mean)}, population std ${figure(stats.std)}`,
    ...divisionOf(group),
    ...(explanation?.remarks ?? flatRemarks(group)),
  ]
  const rows = members.map(({ id, outcome, reward, advantage, because, reason }) => [
    id.slice(id.lastIndexOf('.e') + 1),
    outcome,
    figure(reward),
    signed(advantage),
    reward === null && reason ? `${because}: ${reason}` : because,
  ])
  const head = ['episode', 'outcome', 'reward', 'advantage', 'because']
  return `${parts.join('\n')}\n\n${table(head, rows, new Set([0, 1, 4])).text}\n`
}

/** In what was kept before there was one, it is not known. */
function divisionOf({ estimator, explanation }: Pick<ExplainedGroup, 'estimator' | 'explanation'>) {
  const { divisor } = explanation ?? {}
  if (!divisor) return []
  const by = divisor.value === null ? divisor.name : `${figure(divisor.value)}: ${divisor.name}`
  return [`${estimator} divides by ${by}`]
}

/** What a delivered group says by itself. */
function flatRemarks({ stats, estimator }: Pick<ExplainedGroup, 'stats' | 'estimator'>): string[] {
  const flat = Object.entries(stats.components).filter(([, component]) => component.flat)
  const alone = estimator === 'gigpo' && stats.shared_anchor_share === 0
  return [
    ...flat.map(([name]) => `component "${name}" is flat in this group`),
    ...(alone ? ['GiGPO is GRPO here: no two steps were taken in the same state'] : []),
  ]
}
