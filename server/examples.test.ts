// What the guide shows works as it stands: the example environment, and the stream's script.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import WebSocket from 'ws'
import { parse } from 'yaml'
import { openHouse } from './testkit/house.testkit.ts'

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))
const warehouse = JSON.parse(
  readFileSync(path('examples/warehouse/pack/tasks/two-shelves.json'), 'utf8'),
)

async function withWarehouse() {
  return openHouse({
    simulator: {
      scripts: [{ match: warehouse.request, transcripts: warehouse.transcripts }] as never,
      style: { format: 'hermes', thinking: false, mix: { correct: 1, guessed: 1, wrong: 1 } },
    },
    settings: {
      environments: { warehouse: path('examples/warehouse/warehouse.mjs') },
      packs: [path('examples/warehouse/pack')],
    },
  })
}

describe('the warehouse example', () => {
  test('scores 1 for counting, 0.5 for guessing and 0 for a wrong answer', async () => {
    const house = await withWarehouse()
    try {
      const tasks = [{ task: 'warehouse/two-shelves' }]
      const { groups } = await house.run({
        tasks,
        group_size: 12,
        policy: { sampling: { seed: 1 } },
      })
      const rewards = groups[0]?.episodes.map(({ outcome, reward }) => `${outcome} ${reward}`)
      expect(new Set(rewards)).toEqual(new Set(['ok 1', 'ok 0.5', 'ok 0']))
    } finally {
      await house.close()
    }
  }, 30_000)

  test('its settings name files that exist', () => {
    const settings = parse(readFileSync(path('examples/warehouse/paddock.yaml'), 'utf8'))
    expect(settings).toMatchObject({
      environments: { warehouse: './warehouse.mjs' },
      packs: ['./pack'],
    })
  })
})

test('the script of the streaming guide takes every group of a batch and sees its end', async () => {
  const guide = readFileSync(path('docs/streaming.md'), 'utf8')
  const script = /```js\n([\s\S]*?)```/.exec(guide)?.[1] ?? ''
  const house = await withWarehouse()
  try {
    const tasks = Array(3).fill({ task: 'warehouse/two-shelves' })
    const { id } = await house.api.submit({ id: 'step-41', tasks, group_size: 4 })
    const told: unknown[][] = []
    const socket = await new Promise<WebSocket>((resolve) => {
      const body = script
        .replace("import WebSocket from 'ws'", '')
        .replace("'ws://127.0.0.1:8420/v1/stream'", 'url')
        .concat('\nopened(socket)')
      const run = new Function('WebSocket', 'url', 'console', 'opened', body)
      run(
        WebSocket,
        `${house.url.replace('http', 'ws')}/v1/stream`,
        { log: (...line: unknown[]) => told.push(line) },
        resolve,
      )
    })
    await new Promise((resolve) => socket.once('close', resolve))
    expect(told.map(([group]) => group).sort()).toEqual(['step-41.g0', 'step-41.g1', 'step-41.g2'])
    expect((await house.api.progress(id)).groups.settled).toEqual({ acked: 3 })
  } finally {
    await house.close()
  }
}, 30_000)
