// The buffer over a service of the test's own: answers that never arrive, and a server that is started anew between polls.
import { EventEmitter, once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { createApp } from '../app.ts'
import { loadConfig } from '../config.ts'
import type { LeaseAnswer, Service } from '../service.ts'
import { createStubService } from '../stub-service.testkit.ts'

/** A service that has played every group of what is submitted, and counts what is acknowledged. */
function playedService(notes: Map<string, JsonObject>, known = new Map<string, number[]>()) {
  const open = new Map<string, { batch: string; instance: number }>()
  const leased = new Map<string, { batch: string; instance: number }>()
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
        leased.delete(id)
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
      const total = groupsOf(batch).length
      const ready = [...open.values()].filter((group) => group.batch === batch).length
      const groups = { dropped: [], ready, total, finished: total, in_flight: 0 }
      return { done: false, pause: null, admission: 'open', groups } as never
    },
    async lease(batch, { max }) {
      groupsOf(batch)
      const ready = [...open].filter(([, group]) => group.batch === batch).slice(0, max)
      for (const [id, group] of ready) {
        open.delete(id)
        leased.set(id, group)
      }
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
    async takeBack(batch, leases) {
      groupsOf(batch)
      for (const { id } of leases) {
        told.push(`take back ${id}`)
        leased.delete(id)
        open.set(id, { batch, instance: Number(id.split('.g')[1]) })
      }
    },
    async reclaim(batch, kept) {
      for (const [id, group] of leased)
        if (group.batch === batch && !kept.includes(`lease of ${id}`)) {
          leased.delete(id)
          open.set(id, group)
        }
    },
    notes: async () => [...notes.keys()],
    note: async (name) => structuredClone(notes.get(name) ?? null),
    async keepNote(name, value) {
      if (value === null) notes.delete(name)
      else notes.set(name, structuredClone(value))
    },
  })
  return { service, told, known, leased }
}

const config = loadConfig({ file: null, flags: { dialects: { slime: { rollout_batch_size: 1 } } } })
const headers = { 'content-type': 'application/json' }
const post = (app: ReturnType<typeof createApp>, path: string, body: unknown, outgoing?: unknown) =>
  app.request(path, { method: 'POST', headers, body: JSON.stringify(body) }, { outgoing } as never)
const START = { task_type: 'arithmetic', num_repeat_per_sample: '1', num_epoch: '4' }

type Answer = { phase: string } | null
const isGoing = (answer: Answer) => answer?.phase === 'going'

/** The service, in which the note of a run whose last answer is `such` is not kept: `instead` happens. */
function guarded(
  service: Service,
  such: (answer: Answer) => boolean,
  instead: () => Promise<void>,
): Service {
  return {
    ...service,
    keepNote(name, value) {
      const { run } = (value ?? {}) as { run?: { answer: Answer } }
      return run && such(run.answer) ? instead() : service.keepNote(name, value)
    },
  }
}

/** A service whose process dies before such a note is kept: nothing follows, and `died` resolves. */
function dying(service: Service, such: (answer: Answer) => boolean) {
  let die = () => {}
  const died = new Promise<void>((resolve) => {
    die = resolve
  })
  const forEver = () => {
    die()
    return new Promise<void>(() => {})
  }
  return { service: guarded(service, such, forEver), died }
}

/** How far a socket takes an answer: nothing of it, all but its last byte, all. */
type Reach = 'nothing' | 'most' | 'all'

/** A socket that stands still where it is told to; `break` ends the connection there. */
class Outgoing extends EventEmitter {
  destroyed = false
  writableFinished = false
  text = ''
  reach: Reach
  constructor(reach: Reach) {
    super()
    this.reach = reach
  }
  writeHead() {}
  write(bytes: Uint8Array, done: () => void) {
    if (this.reach === 'nothing') return this.emit('stands')
    this.text += Buffer.from(bytes)
    done()
  }
  end(bytes: Uint8Array, done: () => void) {
    if (this.reach === 'most') return this.emit('stands')
    this.text += Buffer.from(bytes)
    this.writableFinished = true
    done()
  }
  destroy() {
    this.destroyed = true
  }
  break() {
    this.emit('close')
  }
}

/** The groups of an answer that arrives. */
async function poll(app: ReturnType<typeof createApp>) {
  const outgoing = new Outgoing('all')
  const response = await post(app, '/get_rollout_data', {}, outgoing)
  const { data } = JSON.parse(outgoing.text || (await response.text())) as {
    data: { data: { uid: string }[] }
  }
  return data.data.map(({ uid }) => uid)
}

/** An answer that gets so far and no further; `answered` resolves once its connection is broken. */
async function stuck(app: ReturnType<typeof createApp>, reach: 'nothing' | 'most') {
  const outgoing = new Outgoing(reach)
  const stands = once(outgoing, 'stands')
  const answered = post(app, '/get_rollout_data', {}, outgoing)
  await stands
  return { outgoing, answered }
}

describe('an answer', () => {
  test.each(['nothing', 'most'] as const)(
    'of which %s went out before its connection broke is handed out again; one that went out is acknowledged by the next poll',
    async (reach) => {
      const { service, told } = playedService(new Map())
      const app = createApp(service, config)
      await post(app, '/start_rollout', START)
      const { outgoing, answered } = await stuck(app, reach)
      outgoing.break()
      await answered
      expect(await poll(app)).toEqual(['slime-1.0.g0'])
      expect(await poll(app)).toEqual(['slime-1.1.g0'])
      expect(told).toEqual(['take back slime-1.0.g0', 'ack slime-1.0.g0'])
    },
  )

  test('holds the next poll up until it has ended', async () => {
    const { service } = playedService(new Map())
    const app = createApp(service, config)
    await post(app, '/start_rollout', START)
    const { outgoing } = await stuck(app, 'most')
    let answered = false
    const next = poll(app).then((uids) => {
      answered = true
      return uids
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBe(false)
    outgoing.break()
    expect(await next).toEqual(['slime-1.0.g0'])
  })

  test('whose last byte cannot be noted never ends', async () => {
    const { service } = playedService(new Map())
    const full = new PaddockError('store_failed', 'the disk is full')
    const app = createApp(
      guarded(service, isGoing, () => Promise.reject(full)),
      config,
    )
    await post(app, '/start_rollout', START)
    const outgoing = new Outgoing('all')
    await post(app, '/get_rollout_data', {}, outgoing)
    expect(() => JSON.parse(outgoing.text)).toThrow(SyntaxError)
    expect(outgoing.destroyed).toBe(true)
  })
})

describe('a server that is started anew between two polls', () => {
  test('acknowledges what went out, and plays on', async () => {
    const notes = new Map<string, JsonObject>()
    const before = playedService(notes)
    const app = createApp(before.service, config)
    await post(app, '/start_rollout', START)
    await poll(app)
    const after = playedService(notes, before.known)
    const anew = createApp(after.service, config)
    await poll(anew)
    expect(after.told).toEqual(['ack slime-1.0.g0'])
  })

  test('hands out again what lacked its last byte', async () => {
    const notes = new Map<string, JsonObject>()
    const before = playedService(notes)
    const { service, died } = dying(before.service, isGoing)
    const app = createApp(service, config)
    await post(app, '/start_rollout', START)
    void post(app, '/get_rollout_data', {}, new Outgoing('all'))
    await died
    const after = playedService(notes, before.known)
    expect(await poll(createApp(after.service, config))).toEqual(['slime-1.0.g0'])
  })

  test('takes back what it had leased and not yet noted', async () => {
    const notes = new Map<string, JsonObject>()
    const before = playedService(notes)
    const { service, died } = dying(before.service, (answer) => answer !== null)
    const app = createApp(service, config)
    await post(app, '/start_rollout', START)
    void post(app, '/get_rollout_data', {})
    await died
    expect([...before.leased.keys()]).toEqual(['slime-1.0.g0'])
    expect(await poll(createApp(before.service, config))).toEqual(['slime-1.0.g0'])
  })

  test('plays again what it does not know any more', async () => {
    const notes = new Map<string, JsonObject>()
    const app = createApp(playedService(notes).service, config)
    await post(app, '/start_rollout', START)
    const anew = createApp(playedService(notes).service, config)
    const uids = [await poll(anew), await poll(anew), await poll(anew), await poll(anew)]
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

describe('a batch whose news the buffer has still to read', () => {
  const holds = (notes: Map<string, JsonObject>) =>
    [...notes.keys()].filter((name) => name.startsWith('slime-'))
  const open = (service: Service) => createApp(service, config)

  test('is held until its groups have arrived', async () => {
    const notes = new Map<string, JsonObject>()
    const app = open(playedService(notes).service)
    await post(app, '/start_rollout', START)
    expect(holds(notes)).toEqual(['slime-1.0', 'slime-1.1'])
    await poll(app)
    expect(holds(notes)).toContain('slime-1.0')
    await poll(app)
    expect(holds(notes)).toEqual(['slime-1.1', 'slime-1.2'])
  })

  test('is held after a restart, and what a dead server held for nothing is not', async () => {
    const notes = new Map<string, JsonObject>()
    const known = new Map<string, number[]>()
    await post(open(playedService(notes, known).service), '/start_rollout', START)
    notes.delete('slime-1.1')
    notes.set('slime-1.7', {})
    await poll(open(playedService(notes, known).service))
    expect(holds(notes)).toEqual(['slime-1.0', 'slime-1.1'])
  })

  test('is held no longer when another training takes its place', async () => {
    const notes = new Map<string, JsonObject>()
    const app = open(playedService(notes).service)
    await post(app, '/start_rollout', START)
    await post(app, '/start_rollout', { ...START, num_repeat_per_sample: '2' })
    expect(holds(notes)).toEqual(['slime-2.0', 'slime-2.1'])
  })
})
