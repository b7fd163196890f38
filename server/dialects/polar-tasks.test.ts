// Polar's tasks over a service and a callback sender of the test's own: what failed is told member by member, and logged.
import { describe, expect, test } from 'vitest'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { CallbackSender } from '../callback-sender.ts'
import { loadConfig } from '../config.ts'
import type { Service } from '../service.ts'
import { createStubService } from '../stub-service.testkit.ts'
import { createPolarTasks, type PolarTasks } from './polar-tasks.ts'

const config = loadConfig({
  file: null,
  flags: {
    backends: { main: { dialect: 'vllm', url: 'http://127.0.0.1:1', model: 'm', model_dir: '/m' } },
  },
})

/** A group of three of which each member ended otherwise; it is over as soon as it is submitted. */
function failedService(more: Partial<Service> = {}) {
  const dropped = { id: 'x.g0', verdict: 'infra', reason: 'infra_backend: the first reason' }
  const groups = { finished: 1, total: 1, dropped: [dropped], settled: {} }
  const ended = [
    {
      ...{ index: 0, outcome: 'infra_backend', reason: 'the connection broke' },
      seconds: { queued: 1, reset: 0.5, turns: 2, grading: 0 },
    },
    { index: 1, outcome: 'timeout', reason: 'the turn took too long' },
    { index: 2, outcome: 'ok', reason: null },
  ]
  const stub = createStubService({
    progress: () => ({ groups, episodes: { finished: 3 } }) as never,
    groups: async () => ({ total: 1, groups: [{ members: ended }] }) as never,
    ...more,
  })
  return { ...stub, events: () => stub.log }
}

function open(callbacks: CallbackSender, more: Partial<Service> = {}, keepMs?: number) {
  const logged: string[] = []
  const clock = { seconds: 0 }
  const onCallbackFailure = (_: string, reason: string) => logged.push(reason)
  const service = failedService(more)
  const now = () => clock.seconds
  const tasks = createPolarTasks({
    ...{ service, config, callbacks, onCallbackFailure, now },
    ...(keepMs !== undefined && { keepMs }),
  })
  const submit = (callback_url: string | null, metadata: JsonObject = {}) =>
    tasks.submit({
      ...{ task_id: 't', instruction: '', num_samples: 3, callback_url, metadata },
      agent: { harness: 'paddock', settings: { task: 'arithmetic/sum-0' } },
    })
  return { tasks, submit, logged, clock }
}

const taking: CallbackSender = { check: () => {}, send: async () => true }

test('of a group that failed each session has its own outcome and reason, and who did not fail that of the group', async () => {
  const { tasks, submit } = open(taking)
  await submit(null)
  const body = JSON.parse(Buffer.from(await tasks.status('t')).toString()) as JsonObject
  const results = body.results as { status: string; error: string; timing: JsonObject }[]
  expect(results.map(({ timing }) => Object.values(timing))).toEqual([
    [1000, 500, 2000, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ])
  expect(results.map(({ status, error }) => [status, error])).toEqual([
    ['ERROR', 'infra_backend: the connection broke'],
    ['TIMEOUT', 'timeout: the turn took too long'],
    ['ERROR', 'infra_worker: infra_backend: the first reason'],
  ])
})

test('of a group that no body could be made of each session says so', async () => {
  const groups = { finished: 1, total: 1, dropped: [], settled: { undeliverable: 1 } }
  const { tasks, submit } = open(taking, {
    progress: () => ({ groups, episodes: { finished: 3 } }) as never,
    groups: async () => ({ total: 1, groups: [] }) as never,
  })
  await submit(null)
  const { status, results } = JSON.parse(Buffer.from(await tasks.status('t')).toString())
  expect(status).toBe('completed')
  const error = 'infra_store: its group could not be read or encoded, and was given up'
  expect(results.map((one: JsonObject) => one.error)).toEqual([error, error, error])
})

test('a poll that crosses the callback of its task is not answered with another trainer’s task of that name', async () => {
  const { tasks, submit, clock } = open(taking)
  const status = async () => JSON.parse(Buffer.from(await tasks.status('t')).toString()).status
  await submit('http://127.0.0.1:9/')
  await submit('http://127.0.0.1:10/')
  expect(await status()).toBe('running')
  clock.seconds = 20
  expect(await status()).toBe('completed')
})

test('a poll waits for the first try of the callback, which tells what the trainer can read', async () => {
  let end = () => {}
  const { tasks, submit } = open({
    check: () => {},
    async send(_, { body, onFailure }) {
      await body()
      return new Promise((resolve) => {
        end = () => {
          onFailure?.('nobody listens')
          resolve(false)
        }
      })
    },
  })
  await submit('http://127.0.0.1:9/')
  const status = async () => JSON.parse(Buffer.from(await tasks.status('t')).toString()).status
  expect(await status()).toBe('running')
  end()
  expect(await status()).toBe('completed')
})

test('a poll is answered while the callback still waits for its turn', async () => {
  const { tasks, submit } = open({ check: () => {}, send: () => new Promise(() => {}) })
  await submit('http://127.0.0.1:9/')
  expect(JSON.parse(Buffer.from(await tasks.status('t')).toString()).status).toBe('completed')
})

test('a callback that is not taken is logged with what came', async () => {
  const { submit, logged } = open({
    check: () => {},
    async send(_, { onFailure }) {
      onFailure?.('it answered 500')
      return false
    },
  })
  await submit('http://127.0.0.1:9/')
  expect(logged).toEqual(['it answered 500'])
})

test('a callback to a host that is not allowed is logged and never made', async () => {
  const { submit, logged } = open({
    check(url) {
      throw new PaddockError('invalid_request', `${new URL(url).host} is not allowed`)
    },
    send: () => Promise.reject(new Error('no callback may be made')),
  })
  const answer = await submit('http://10.0.0.1:9/')
  expect(answer.warning).toContain('10.0.0.1:9')
  expect(logged).toEqual([answer.warning])
})

describe('over a restart', () => {
  /** Processes one after another over the notes and batches of the first. */
  function lives(callbacks: CallbackSender) {
    const notes = new Map<string, JsonObject>()
    let onGone = (_: boolean) => {}
    const gone = new Promise<boolean>((resolve) => {
      onGone = resolve
    })
    const more: Partial<Service> = {
      batches: () => [...notes.keys()].map((id) => ({ id }) as never),
      note: async (name) => notes.get(name) ?? null,
      async keepNote(name, value) {
        if (value === null) notes.delete(name)
        else notes.set(name, structuredClone(value))
      },
      notes: async () => [...notes.keys()],
      letGo: async (_, taken) => onGone(taken),
    }
    return {
      gone,
      notes,
      next: (own: Partial<Service> = {}, keepMs?: number) =>
        open(callbacks, { ...more, ...own }, keepMs),
    }
  }
  const counting = (taken: boolean) => {
    const made: string[] = []
    const send: CallbackSender['send'] = async (url) => {
      made.push(url)
      return taken
    }
    return { made, sender: { check: () => {}, send } }
  }
  const URL_9 = 'http://127.0.0.1:9/'

  test('a callback that was taken is not made again, and its result stays', async () => {
    const { made, sender } = counting(true)
    const { next } = lives(sender)
    await next().submit(URL_9)
    const { tasks } = next()
    expect(JSON.parse(Buffer.from(await tasks.status('t')).toString()).status).toBe('completed')
    expect(made).toEqual([URL_9])
  })

  test('a callback that was not taken is made again, though its result was polled', async () => {
    const { made, sender } = counting(false)
    const { next } = lives(sender)
    const first = next()
    await first.submit(URL_9)
    await first.tasks.status('t')
    await next().tasks.status('t')
    expect(made).toEqual([URL_9, URL_9])
  })

  test('of a task that was cancelled no callback is made', async () => {
    const { made, sender } = counting(true)
    let finished = 0
    const progress = () => ({
      groups: { finished, total: 1, dropped: [], settled: {} },
      episodes: { finished: 0 },
    })
    const { next } = lives(sender)
    const cancel = async () => progress() as never
    const first = next({ progress: progress as never, cancel })
    await first.submit(URL_9)
    await first.tasks.cancel('t', false)
    finished = 1
    await next({ progress: progress as never }).tasks.status('t')
    expect(made).toEqual([])
  })

  test('the note of a batch that is not there any more goes', async () => {
    const { notes, next } = lives(taking)
    await next().submit(null)
    expect(notes.size).toBe(1)
    const { tasks } = next({ batches: () => [] })
    await expect(tasks.status('t')).rejects.toThrow('no task t')
    expect(notes.size).toBe(0)
  })

  test('the note of a task that is over goes, though its batch went before', async () => {
    const { notes, next } = lives(taking)
    const letGo = () => Promise.reject(new PaddockError('gone', 'batch b was done long ago'))
    await next({ letGo }, 5).submit(null)
    await expect.poll(() => notes.size).toBe(0)
  })

  test('what a poll has handed out leaves the store as taken', async () => {
    const { gone, next } = lives(taking)
    const first = next()
    await first.submit(null)
    await first.tasks.status('t')
    next({}, 50)
    expect(await gone).toBe(true)
  })
})

describe('two tasks of one id', () => {
  const ask = async (tasks: PolarTasks, id: string) => {
    const { status, results } = JSON.parse(Buffer.from(await tasks.status(id)).toString())
    return status === 'running' ? status : results[0].metadata.of
  }

  test('without a callback: the second is answered with an id of its own, and each poll gets its own', async () => {
    const { tasks, submit } = open(taking)
    const [first, second] = [await submit(null, { of: 'a' }), await submit(null, { of: 'b' })]
    expect(first.task_id).toBe('t')
    expect(second.task_id).not.toBe('t')
    // Whose the bare id is cannot be told while both may be asked for.
    expect(await ask(tasks, 't')).toBe('running')
    expect(await ask(tasks, String(second.task_id))).toBe('b')
    expect(await ask(tasks, 't')).toBe('a')
  })

  test('of which the second has a callback: the bare id is the first’s once that was taken', async () => {
    const { tasks, submit, clock } = open(taking)
    await submit(null, { of: 'a' })
    await submit('http://127.0.0.1:9/', { of: 'b' })
    expect(await ask(tasks, 't')).toBe('running')
    clock.seconds = 20
    expect(await ask(tasks, 't')).toBe('a')
  })

  test('of which one may not be called back: it is the one that is polled', async () => {
    const { tasks, submit, clock } = open({
      check(url) {
        if (url.includes('10.0.0.1')) throw new PaddockError('invalid_request', 'not allowed')
      },
      send: async () => true,
    })
    await submit('http://10.0.0.1:9/', { of: 'a' })
    await submit('http://127.0.0.1:9/', { of: 'b' })
    clock.seconds = 20
    expect(await ask(tasks, 't')).toBe('a')
  })

  test('the second of which comes when the first was handed out has the bare id', async () => {
    const { tasks, submit } = open(taking)
    await submit(null, { of: 'a' })
    expect(await ask(tasks, 't')).toBe('a')
    expect((await submit(null, { of: 'b' })).task_id).toBe('t')
    expect(await ask(tasks, 't')).toBe('b')
  })
})

test('a callback that may not be made for another reason than its host is warned of with that reason', async () => {
  const { submit } = open({
    check() {
      throw new PaddockError('invalid_request', 'expected a URL without user and password')
    },
    send: () => Promise.reject(new Error('no callback may be made')),
  })
  const { warning } = await submit('http://user:word@127.0.0.1:9/')
  expect(warning).toBe('no callback is made: expected a URL without user and password')
})
