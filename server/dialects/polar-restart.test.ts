// Polar's tasks over a restart of the server: what was finished is still there, what ran goes on, callbacks are made.
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { startSimulator } from '../../bench/simulator/server.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { type House, openHouse, scripts } from '../testkit/house.testkit.ts'

const task = (task_id: string, more: JsonObject = {}): string =>
  JSON.stringify({
    task_id,
    instruction: '',
    num_samples: 2,
    agent: { harness: 'paddock', settings: { task: 'arithmetic/sum-0' } },
    metadata: { policy_version: 3 },
    ...more,
  })

async function submit(house: House, body: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const url = `${house.url}/rollout/task/submit`
  const response = await fetch(url, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
}

async function finished(house: House, task_id: string) {
  for (;;) {
    const response = await fetch(`${house.url}/rollout/task/${task_id}`)
    expect(response.status).toBe(200)
    const body = (await response.json()) as { status: string; results: JsonObject[] }
    if (body.status === 'completed') return body
  }
}

test('a server that starts again answers for the tasks of the one before', async () => {
  const simulator = await startSimulator({ scripts: scripts() })
  const setFaults = (...faults: JsonObject[]) =>
    fetch(`${simulator.url}/simulator/faults`, { method: 'POST', body: JSON.stringify({ faults }) })
  const path = mkdtempSync(join(tmpdir(), 'paddock-polar-'))
  const open = () => openHouse({ backendUrl: simulator.url, settings: { ledger: { path } } })

  // The trainer's listener, which is deaf until the server has started again.
  let deaf = false
  const heard: { task_id: string; results: JsonObject[] }[] = []
  let onBoth = () => {}
  let onFirst = () => {}
  const told = new Promise<void>((resolve) => {
    onFirst = resolve
  })
  const both = new Promise<void>((resolve) => {
    onBoth = resolve
  })
  const listener = createServer(async (request, response) => {
    const body = (await json(request)) as (typeof heard)[number]
    if (!deaf) heard.push(body)
    response.end(JSON.stringify({ ok: !deaf }))
    if (heard.length === 1) onFirst()
    if (heard.length === 3) onBoth()
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const callback_url = `http://127.0.0.1:${port}/callback/task_result`

  const first = await open()
  await submit(first, task('told', { callback_url }))
  await told
  await finished(first, 'told')
  deaf = true
  await submit(first, task('done', { callback_url }))
  const before = await finished(first, 'done')
  await setFaults({ kind: 'hang' })
  await submit(first, task('runs', { callback_url }))
  await first.close()

  await setFaults()
  deaf = false
  const second = await open()
  const after = await finished(second, 'done')
  expect(after).toEqual(before)
  const ran = await finished(second, 'runs')
  expect(ran.results.map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED'])
  expect(ran.results[0]?.metadata).toMatchObject({ policy_version: 3 })
  await both
  expect(heard.map(({ task_id }) => task_id).sort()).toEqual(['done', 'runs', 'told'])
  expect(heard.find(({ task_id }) => task_id === 'done')?.results).toEqual(before.results)
  await second.close()
  listener.close()
  listener.closeAllConnections()
  await simulator.close()
}, 120_000)
