// The buffer over a service of the test's own: answers that never arrive, and a server that is started anew between polls.
import { describe, expect, test } from 'vitest'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { createApp } from '../app.ts'
import { loadConfig } from '../config.ts'
import type { LeaseAnswer } from '../service.ts'
import { createStubService } from '../stub-service.testkit.ts'

/** A service that has played every group of what is submitted, and counts what is acknowledged. */
function playedService(notes: Map<string, JsonObject>, known = new Map<string, number[]>()) {
  const open = new Map<string, { batch: string; instance: number }>()
  const told: string[] = []
  const groupsOf = (batch: string) => {
    const instances = known.get(batch)
    if (!instances) throw new PaddockError('not_found', `no batch ${batch}`)
    return instances
  }
  const answer =
    (how: 'ack' | 'nack') => async (batch: string, asked: { groups: { id: string }[] }) => {
      groupsOf(batch)
      for (const { id } of asked.groups) {
        told.push(`${how} ${id}`)
        if (how === 'nack') open.set(id, { batch, instance: Number(id.split('.g')[1]) })
      }
      return asked.groups.map(({ id }) => ({ id, result: `${how}ed` as 'acked' | 'nacked' }))
    }
  const service = createStubService({
    async submit(request) {
      const id = request.id!
      known.set(
        id,
        request.tasks.map((_, index) => index),
      )
      for (const index of known.get(id)!)
        open.set(`${id}.g${index}`, { batch: id, instance: index })
      return { id, groups: request.tasks.length, episodes: 1 }
    },
    progress(batch) {
      groupsOf(batch)
      return { done: false, pause: null, groups: { dropped: [] } } as never
    },
    async lease(batch, { max }) {
      groupsOf(batch)
      const ready = [...open].filter(([, group]) => group.batch === batch).slice(0, max)
      for (const [id] of ready) open.delete(id)
      const groups = ready.map(([id, { instance }]) => ({
        id,
        lease: { id: `lease of ${id}` },
        metadata: { slime: { instance_id: instance } },
        stats: { scored: 1, mean: 1 },
      }))
      const items = ready.map(([uid, { instance }]) => ({ uid, instance_id: instance }))
      return {
        body: new TextEncoder().encode(JSON.stringify(items)),
        groups,
      } as unknown as LeaseAnswer
    },
    ack: answer('ack'),
    nack: answer('nack'),
    note: async (name) => structuredClone(notes.get(name) ?? null),
    async keepNote(name, value) {
      if (value === null) notes.delete(name)
      else notes.set(name, structuredClone(value))
    },
  })
  return { service, told, known }
}

const config = loadConfig({ file: null, flags: { dialects: { slime: { rollout_batch_size: 1 } } } })
const headers = { 'content-type': 'application/json' }
const post = (app: ReturnType<typeof createApp>, path: string, body: unknown, outgoing?: unknown) =>
  app.request(path, { method: 'POST', headers, body: JSON.stringify(body) }, { outgoing } as never)
const START = { task_type: 'arithmetic', num_repeat_per_sample: '1', num_epoch: '4' }

/** A socket that ends as it is told. */
class Outgoing extends EventTarget {
  destroyed = false
  once = (name: string, listener: () => void) => this.addEventListener(name, listener)
  end = (how: 'finish' | 'close') => this.dispatchEvent(new Event(how))
}

async function poll(app: ReturnType<typeof createApp>, how: 'finish' | 'close' | 'never') {
  const outgoing = new Outgoing()
  const response = await post(app, '/get_rollout_data', {}, outgoing)
  if (how !== 'never') outgoing.end(how)
  const { data } = (await response.json()) as { data: { data: { uid: string }[] } }
  return data.data.map(({ uid }) => uid)
}

describe('an answer', () => {
  test('whose connection broke is handed out again; one that went out is acknowledged by the next poll', async () => {
    const { service, told } = playedService(new Map())
    const app = createApp(service, config)
    await post(app, '/start_rollout', START)
    expect(await poll(app, 'close')).toEqual(['slime-1.0.g0'])
    expect(await poll(app, 'finish')).toEqual(['slime-1.0.g0'])
    expect(await poll(app, 'finish')).toEqual(['slime-1.1.g0'])
    expect(told).toEqual(['nack slime-1.0.g0', 'ack slime-1.0.g0'])
  })

  test('holds the next poll up until it has ended', async () => {
    const { service } = playedService(new Map())
    const app = createApp(service, config)
    await post(app, '/start_rollout', START)
    const outgoing = new Outgoing()
    await post(app, '/get_rollout_data', {}, outgoing)
    let answered = false
    const next = poll(app, 'finish').then((uids) => {
      answered = true
      return uids
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBe(false)
    outgoing.end('finish')
    expect(await next).toEqual(['slime-1.1.g0'])
  })
})

describe('a server that is started anew between two polls', () => {
  test('acknowledges what went out, and plays on', async () => {
    const notes = new Map<string, JsonObject>()
    const before = playedService(notes)
    const app = createApp(before.service, config)
    await post(app, '/start_rollout', START)
    await poll(app, 'finish')
    const after = playedService(notes, before.known)
    const anew = createApp(after.service, config)
    await poll(anew, 'finish')
    expect(after.told).toEqual(['ack slime-1.0.g0'])
  })

  test('hands out again what was under way', async () => {
    const notes = new Map<string, JsonObject>()
    const before = playedService(notes)
    const app = createApp(before.service, config)
    await post(app, '/start_rollout', START)
    await poll(app, 'never')
    const after = playedService(notes, before.known)
    expect(await poll(createApp(after.service, config), 'finish')).toEqual(['slime-1.0.g0'])
  })

  test('plays again what it does not know any more', async () => {
    const notes = new Map<string, JsonObject>()
    const app = createApp(playedService(notes).service, config)
    await post(app, '/start_rollout', START)
    const anew = createApp(playedService(notes).service, config)
    const uids = [
      await poll(anew, 'finish'),
      await poll(anew, 'finish'),
      await poll(anew, 'finish'),
    ]
    expect(uids.flat()).toEqual(['slime-1.2.g0', 'slime-1.3.g0', 'slime-1.4.g0'])
  })
})

describe('who may ask', () => {
  const server = { tokens: [{ token: 'trainer-token', roles: ['submit', 'lease'] }] }
  const app = (open: boolean) =>
    createApp(
      createStubService(),
      loadConfig({ file: null, flags: { server, dialects: { slime: { open } } } }),
    )
  const paths = ['/get_rollout_data', '/buffer/write', '/v1/compat/slime?pack=arithmetic']

  test('a token is asked for, and taken as the password of an address', async () => {
    for (const path of paths) expect((await post(app(false), path, {})).status).toBe(401)
    const authorization = `Basic ${btoa(':trainer-token')}`
    const request = { method: 'POST', headers: { ...headers, authorization }, body: '{}' }
    expect((await app(false).request('/get_rollout_data', request)).status).toBe(200)
  })

  test('open routes ask for none, the others still do, and a foreign page is refused', async () => {
    for (const path of paths) expect((await post(app(true), path, {})).status).not.toBe(401)
    expect((await app(true).request('/v1/batches')).status).toBe(401)
    const foreign = { ...headers, origin: 'https://evil.example' }
    const request = { method: 'POST', headers: foreign, body: '{}' }
    expect((await app(true).request('/get_rollout_data', request)).status).toBe(403)
  })
})
