// Polar's tasks whose groups failed, behind more batches than are kept: each can be polled until its task is over.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type House, openHouse } from '../testkit/house.testkit.ts'

const TASKS = ['t-0', 't-1', 't-2', 't-3']

async function submit(house: House, task_id: string): Promise<void> {
  const body = JSON.stringify({
    ...{ task_id, instruction: '', num_samples: 1, timeout_seconds: 1, metadata: {} },
    agent: { harness: 'paddock', settings: { task: 'arithmetic/sum-0' } },
  })
  const headers = { 'content-type': 'application/json' }
  const url = `${house.url}/rollout/task/submit`
  expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
}

async function running(house: House): Promise<number> {
  const answer = await (await fetch(`${house.url}/rollout/status`)).json()
  return (answer as { running: number }).running
}

async function poll(house: House, task_id: string) {
  const response = await fetch(`${house.url}/rollout/task/${task_id}`)
  const { status, results } = (await response.json()) as {
    status: string
    results?: { status: string }[]
  }
  return [response.status, status, results?.map((session) => session.status)]
}

test('a task that failed is answered for after newer ones were submitted, and after a restart', async () => {
  const path = mkdtempSync(join(tmpdir(), 'paddock-polar-'))
  const settings = { ledger: { path }, limits: { keep_episodes: 1 } }
  const first = await openHouse({ settings })
  await first.setFaults({ kind: 'hang' })
  for (const id of TASKS) await submit(first, id)
  while ((await running(first)) > 0) await new Promise((resolve) => setTimeout(resolve, 50))
  await submit(first, 'newer')
  const failed = TASKS.map(() => [200, 'completed', ['TIMEOUT']])
  expect(await Promise.all(TASKS.map((id) => poll(first, id)))).toEqual(failed)
  await first.close()

  const second = await openHouse({ settings })
  expect(await Promise.all(TASKS.map((id) => poll(second, id)))).toEqual(failed)
  await second.close()
}, 60_000)
