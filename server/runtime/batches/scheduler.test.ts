// The scheduler: never more than its capacity, fair over batches, in order within one, and held without starving.
import { expect, test, vi } from 'vitest'
import { createScheduler, type Start } from './scheduler.ts'

/** Starts that end when told to. */
function recorder() {
  const started: string[] = []
  const open = new Map<string, () => void>()
  const start = (name: string, opensGroup = false): Start => ({
    opensGroup: () => opensGroup,
    run() {
      started.push(name)
      return new Promise<void>((resolve) => open.set(name, resolve))
    },
  })
  const end = async (name: string) => {
    open.get(name)?.()
    open.delete(name)
    await new Promise(setImmediate)
  }
  return { started, start, end, open }
}

test('no more starts run at once than the capacity, and batches take turns', async () => {
  const scheduler = createScheduler(2)
  const { started, start, end, open } = recorder()
  for (const name of ['a1', 'a2', 'a3', 'a4']) scheduler.enqueue('a', start(name))
  for (const name of ['b1', 'b2']) scheduler.enqueue('b', start(name))
  expect(started).toEqual(['a1', 'a2'])
  while (open.size > 0) {
    expect(scheduler.running()).toBeLessThanOrEqual(2)
    await end([...open.keys()][0] as string)
  }
  expect(started).toEqual(['a1', 'a2', 'a3', 'b1', 'a4', 'b2'])
})

test('a removed batch starts nothing more, and idle resolves when what runs has ended', async () => {
  const scheduler = createScheduler(1)
  const { started, start, end } = recorder()
  for (const name of ['a1', 'a2']) scheduler.enqueue('a', start(name))
  const idle = scheduler.idle()
  scheduler.remove('a')
  await end('a1')
  await idle
  expect(started).toEqual(['a1'])
})

test('a paused scheduler lets what runs end and starts nothing until it goes on', async () => {
  const scheduler = createScheduler(1)
  const { started, start, end } = recorder()
  scheduler.enqueue('a', start('a1'))
  scheduler.enqueue('a', start('a2'))
  scheduler.pause(true)
  await end('a1')
  await scheduler.idle()
  expect(started).toEqual(['a1'])
  scheduler.pause(false)
  expect(started).toEqual(['a1', 'a2'])
  await end('a2')
})

test('a held batch goes on with its groups and starts none, a paused one starts nothing, others are free', async () => {
  const scheduler = createScheduler(6)
  const { started, start } = recorder()
  scheduler.gate('a', 'held')
  scheduler.gate('c', 'paused')
  scheduler.enqueue('c', start('c under way'))
  scheduler.enqueue('a', start('a new group', true))
  scheduler.enqueue('b', start('a new group of b', true))
  scheduler.enqueue('a', start('a again'), 'first')
  expect(started).toEqual(['a new group of b', 'a again'])
  scheduler.gate('a', 'open')
  scheduler.gate('c', 'open')
  expect(started).toEqual(['a new group of b', 'a again', 'a new group', 'c under way'])
})

test('it tells how long the oldest start has waited, wherever it stands', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const scheduler = createScheduler(1)
    const { start, end } = recorder()
    for (const name of ['a1', 'a2']) scheduler.enqueue('a', start(name))
    vi.advanceTimersByTime(3000)
    scheduler.enqueue('a', start('a0'), 'first')
    expect(scheduler.oldest()).toBe(3)
    await end('a1')
    await end('a0')
    await end('a2')
    expect(scheduler.oldest()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
