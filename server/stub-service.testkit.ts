// A Service for tests of the edge: one batch `b1` with a real event log, groups handed out from a list.
import { PaddockError } from '../protocol/errors.ts'
import { createEventLog, type WritableEventLog } from './runtime/batches/event-log.ts'
import type { LeaseAnswer, Service } from './service.ts'

export interface StubService extends Service {
  log: WritableEventLog
  /** Groups that the next leases take, as JSON texts. */
  ready: string[]
  /** Every call, as `name` and its arguments. */
  calls: { name: string; args: unknown[] }[]
  /** Resolves when a waiting lease was aborted. */
  aborted: Promise<void>
  /** Wakes leases that wait for a group. */
  wake(): void
}

export function createStubService(overrides: Partial<Service> = {}): StubService {
  const log = createEventLog(100)
  const waiters = new Set<() => void>()
  const calls: StubService['calls'] = []
  let onAborted = () => {}
  const aborted = new Promise<void>((resolve) => {
    onAborted = resolve
  })
  const ready: string[] = []

  const note = (name: string, ...args: unknown[]) => {
    calls.push({ name, args })
  }
  const known = (batch: string) => {
    if (batch !== 'b1') throw new PaddockError('not_found', `batch ${batch}: there is none`)
  }
  const answer = (max: number): LeaseAnswer => {
    const groups = ready.splice(0, max)
    const text = `{"groups":[${groups.join(',')}],"done":${log.ended}}`
    const heads = groups.map((group) => JSON.parse(group) as LeaseAnswer['groups'][number])
    return { body: new TextEncoder().encode(text), groups: heads }
  }

  return {
    log,
    ready,
    calls,
    aborted,
    wake() {
      for (const wake of waiters) wake()
    },
    async submit(request) {
      note('submit', request)
      return { id: request.id ?? 'b1', groups: request.tasks.length, episodes: 8 }
    },
    progress(batch) {
      known(batch)
      return { id: batch, done: log.ended } as never
    },
    batches: () => [],
    polarPolled() {},
    async letGo() {},
    async cancel(batch) {
      known(batch)
      note('cancel', batch)
      return { id: batch, state: 'cancelled' } as never
    },
    async evaluation(batch, settings) {
      known(batch)
      note('evaluation', batch, settings)
      return { settings } as never
    },
    async resume(batch) {
      known(batch)
      note('resume', batch)
      return { id: batch, pause: null } as never
    },
    async discard(batch) {
      note('discard', batch)
    },
    async lease(batch, request, encoding, signal) {
      known(batch)
      note('lease', batch, request, encoding)
      if (ready.length > 0 || request.wait_s === 0) return answer(request.max)
      await new Promise<void>((resolve) => {
        const settle = () => {
          waiters.delete(settle)
          resolve()
        }
        waiters.add(settle)
        signal.addEventListener('abort', () => {
          onAborted()
          settle()
        })
      })
      return signal.aborted ? answer(0) : answer(request.max)
    },
    async ack(batch, request) {
      known(batch)
      note('ack', batch, request)
      return request.groups.map(({ id }) => ({ id, result: 'acked' }))
    },
    async nack(batch, request) {
      known(batch)
      note('nack', batch, request)
      return request.groups.map(({ id }) => ({ id, result: 'nacked' }))
    },
    async takeBack(batch, leases) {
      note('takeBack', batch, leases)
    },
    async reclaim(batch, kept) {
      note('reclaim', batch, kept)
    },
    events(batch) {
      known(batch)
      return log
    },
    tasks: (pack) => {
      note('tasks', pack)
      const facts = { environment: 'arithmetic', title: 'A sum', contract: 'arithmetic@1' }
      return [{ id: 'arithmetic/sum-0', pack: 'arithmetic', ...facts }]
    },
    async task(id) {
      return { id }
    },
    async episode(id) {
      return new TextEncoder().encode(JSON.stringify({ id }))
    },
    async tokens(id) {
      return new TextEncoder().encode(JSON.stringify({ id, samples: [] }))
    },
    async groups(batch, page) {
      known(batch)
      note('groups', batch, page)
      return { total: 0, groups: [] }
    },
    async explain(group) {
      note('explain', group)
      return { id: group } as never
    },
    announcePolicy: (request) => Promise.resolve({ ...request }),
    heartbeat: (request) => ({ ...request }),
    async grade(asked) {
      note('grade', asked)
      return { outcome: 'ok', reason: null, reward: 1 }
    },
    async parse(line) {
      return { line: line as never }
    },
    async advantages(line) {
      return { line: line as never }
    },
    waitReady: async () => ready.length > 0,
    peek: async () => null,
    note: async () => null,
    notes: async () => [],
    async keepNote(name, value) {
      note('keepNote', name, value)
    },
    notReady: () => [],
    async metrics() {
      return { contentType: 'text/plain; version=0.0.4', text: 'paddock_up 1\n' }
    },
    ...overrides,
  }
}
