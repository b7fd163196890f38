// One ledger over each store: what is kept, in which order it is seen, and what is found again.
import { afterEach, describe, expect, test } from 'vitest'
import type { LeasedGroup } from '../../rollout/ports.ts'
import { keys } from './keys.ts'
import {
  type Bench,
  endOf,
  openBench,
  place,
  STORES,
  sealedOf,
  settledOf,
  withReady,
} from './ledger.testkit.ts'
import { frame, frameJson } from './record.ts'

const never = () => false
const handles = (groups: readonly LeasedGroup[]) =>
  groups.map(({ record, lease }) => ({ id: record.id, lease: lease.id }))
const ids = (groups: readonly LeasedGroup[]) => groups.map(({ record }) => record.id)

describe.each(STORES)('the ledger over %s', (kind) => {
  let bench: Bench
  afterEach(() => bench.close())
  const open = async (
    ...options: Parameters<typeof openBench> extends [unknown, ...infer R] ? R : never
  ) => {
    bench = await openBench(kind, ...options)
    return bench.ledger
  }
  /** The same records under a new ledger, as a new process finds them. */
  const again = async () => {
    bench = await bench.again()
    return bench.ledger
  }

  test('leases finished groups in their order, with the bytes that were sealed', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 3)
    const leased = await ledger.lease('b', 2, 60, never)
    expect(ids(leased)).toEqual(['b.g0', 'b.g1'])
    expect(Buffer.from(leased[1]?.sealed[0]?.blob ?? []).toString()).toBe('b 1')
    expect(leased[0]?.sealed[0]?.header.row_bytes).toBe(1)
    expect(ledger.deliveries('b')).toMatchObject({ ready: 1, leased: 2, acked: 0 })
    expect(ledger.heldBytes('b')).toBe(9)
    expect(await ledger.ack('b', handles(leased))).toEqual(['acked', 'acked'])
    expect(ledger.heldBytes('b')).toBe(3)
    expect(ledger.standing()).toEqual({ ready: 1, leased: 0 })
  })

  test('a lease has no more bytes than one body can be made of, and at least one group', async () => {
    const ledger = await open()
    await ledger.submit({ id: 'b', request: '{}', digest: 'd', plan: {} })
    const megabytes = [40, 12, 12, 12]
    for (const [group, size] of megabytes.entries()) {
      const sealed = { ...sealedOf(''), blob: new Uint8Array(size * 2 ** 20) }
      await ledger.end(place('b', group), endOf(group, 0), sealed)
      await ledger.settle('b', [settledOf('b', group)], () => {})
    }
    expect(ids(await ledger.lease('b', 9, 60, never))).toEqual(['b.g0'])
    expect(ids(await ledger.lease('b', 9, 60, never))).toEqual(['b.g1', 'b.g2'])
    expect(ids(await ledger.lease('b', 9, 60, never))).toEqual(['b.g3'])
  })

  test('a group that is given up is undeliverable, and stays so', async () => {
    await withReady(await open(), 'b', 2)
    await bench.ledger.giveUp('b', 'b.g0')
    const ledger = await again()
    expect(ledger.deliveries('b')).toMatchObject({ ready: 1, leased: 0, undeliverable: 1 })
    expect(ids(await ledger.lease('b', 9, 60, never))).toEqual(['b.g1'])
  })

  test('a lease runs out too where the timer fires a moment before its end', async () => {
    let [seconds, looked, armed] = [0, 0, false]
    // The first look after the lease began is the timer's: to the clock the end has not quite come.
    const clock = () => {
      if (armed && looked++ > 0) seconds = 1
      return seconds
    }
    const ledger = await open({ clock })
    await withReady(ledger, 'b', 1)
    const leased = await ledger.lease('b', 1, 60, never)
    await ledger.renew('b', handles(leased), 0.01)
    armed = true
    await new Promise<void>((resolve) => ledger.watch('b', resolve))
    expect(ledger.deliveries('b')).toMatchObject({ ready: 1, leased: 0 })
  })

  test('two that lease at once never get the same group, and of two acks one counts', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 4)
    const both = await Promise.all([1, 2].map(() => ledger.lease('b', 3, 60, never)))
    expect(both.flatMap(ids).sort()).toEqual(['b.g0', 'b.g1', 'b.g2', 'b.g3'])
    const [one = []] = both
    const acks = await Promise.all([1, 2].map(() => ledger.ack('b', handles(one.slice(0, 1)))))
    expect(acks.flat().sort()).toEqual(['acked', 'duplicate'])
  })

  test('a lease that is over is ready again, its ack is late; a handed back one is ready at once', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 1)
    const first = await ledger.lease('b', 1, 10, never)
    await ledger.renew('b', handles(first), 10)
    bench.pass(9)
    expect(await ledger.lease('b', 1, 10, never)).toEqual([])
    bench.pass(1)
    const second = await ledger.lease('b', 1, 10, never)
    expect(second[0]?.lease.delivery).toBe(2)
    expect(await ledger.ack('b', handles(first))).toEqual(['late'])
    expect(await ledger.nack('b', handles(second))).toEqual(['nacked'])
    expect(await ledger.lease('b', 1, 10, never)).toHaveLength(1)
  })

  test('leases that reached nobody are ready again and not counted, for a new process too', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 2)
    for (let time = 0; time < 12; time++)
      await ledger.takeBack('b', handles(await ledger.lease('b', 1, 60, never)))
    expect(ledger.deliveries('b')).toMatchObject({ ready: 2, leased: 0, nacked: 0 })
    const leased = await (await again()).lease('b', 2, 60, never)
    expect(leased.map(({ lease }) => lease.delivery)).toEqual([1, 1])
  })

  test('leases that their holder has lost count of are ready at once, and those that it names stay out', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 3)
    const leased = await ledger.lease('b', 3, 600, never)
    const before = handles(leased)
    const anew = await again()
    await anew.reclaim('b', [before[1]?.lease ?? ''])
    expect(anew.deliveries('b')).toMatchObject({ ready: 2, leased: 1 })
    expect(await anew.ack('b', before)).toEqual(['late', 'acked', 'late'])
    expect(ids(await anew.lease('b', 3, 600, never)).sort()).toEqual(['b.g0', 'b.g2'])
  })

  test('a lease runs from when its holder has it: until then its body is made', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 1)
    const leased = await ledger.lease('b', 1, 10, never)
    bench.pass(30)
    await ledger.renew('b', handles(leased), 10)
    bench.pass(9)
    expect(await ledger.ack('b', handles(leased))).toEqual(['acked'])
  })

  test('stale groups settle and are passed over', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 0)
    for (const [group, oldest] of [5, 7, null].entries())
      await ledger.settle('b', [settledOf('b', group, 'ready', oldest)], () => {})
    const leased = await ledger.lease('b', 8, 60, (oldest) => oldest !== null && oldest < 6)
    expect(ids(leased)).toEqual(['b.g1', 'b.g2'])
    expect(ledger.deliveries('b')).toMatchObject({ stale: 1, leased: 2 })
  })

  test('what settles is counted in the same step in which its batch and its watchers see it', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 0)
    const seen: unknown[] = []
    ledger.watch('b', () => seen.push(['watched', ledger.deliveries('b').ready]))
    const settling = ledger.settle('b', [settledOf('b', 0), settledOf('b', 1)], () =>
      seen.push(['applied', ledger.deliveries('b').ready]),
    )
    expect(seen).toEqual([])
    await settling
    expect(seen).toEqual([
      ['applied', 2],
      ['watched', 2],
    ])
  })

  test('a new process finds batches with all that happened to them, in order', async () => {
    const ledger = await open()
    await withReady(ledger, 'z', 1)
    bench.pass(1)
    await withReady(ledger, 'a', 0)
    const start = { type: 'start' as const, group: 0, index: 0, attempt: 1, turns: 0 }
    await ledger.tell('a', start)
    await ledger.end(place('a', 0, 1), endOf(0, 1), null)
    await ledger.keepNote('policy/main', { version: 7 })
    const found = (await again()).resume()
    expect(found.batches.map(({ entry }) => entry.id)).toEqual(['z', 'a'])
    expect(found.batches[1]).toMatchObject({
      entry: { id: 'a', request: '{"asked":true}', digest: 'd', plan: { of: 'a' } },
      damage: null,
    })
    expect(found.batches[1]?.events.map(({ event }) => event)).toEqual([start, endOf(0, 1)])
    expect(found.submitted).toEqual(
      new Map([
        ['a', 'd'],
        ['z', 'd'],
      ]),
    )
    expect(found.life).toBe(1)
    expect(await bench.ledger.note('policy/main')).toEqual({ version: 7 })
    expect(await bench.ledger.note('policy/other')).toBeNull()
    expect(await bench.ledger.notes()).toEqual(['policy/main'])
  })

  test('ready, leased and acknowledged groups are so for a new process, and their bytes are the same', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 4)
    const leased = await ledger.lease('b', 2, 60, never)
    await ledger.renew('b', handles(leased), 60)
    await ledger.ack('b', handles(leased).slice(0, 1))
    const after = await again()
    expect(after.deliveries('b')).toMatchObject({ ready: 2, leased: 1, acked: 1 })
    expect(after.heldBytes('b')).toBe(9)
    const rest = await after.lease('b', 8, 60, never)
    expect(ids(rest)).toEqual(['b.g2', 'b.g3'])
    expect(Buffer.from(rest[0]?.sealed[0]?.blob ?? []).toString()).toBe('b 2')
    expect(await after.ack('b', handles(leased))).toEqual(['duplicate', 'acked'])
  })

  test('a lease has for a new process the time that it had left, less the second that may have gone unseen; no time passes while none runs', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 1)
    const leased = await ledger.lease('b', 1, 60, never)
    await ledger.renew('b', handles(leased), 60)
    bench.pass(50)
    await ledger.keepNote('any', {})
    const after = await again()
    expect(after.now()).toBe(51)
    bench.pass(8)
    expect(await after.lease('b', 1, 60, never)).toEqual([])
    bench.pass(1)
    expect(ids(await after.lease('b', 1, 60, never))).toEqual(['b.g0'])
  })

  test('the replies of an attempt are kept in order until it ends', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 0)
    const bytes = (...texts: string[]) => texts.map((text) => new TextEncoder().encode(text))
    const texts = (entries: readonly Uint8Array[]) =>
      entries.map((one) => Buffer.from(one).toString())
    for (const entry of bytes('one', 'two')) await ledger.turn(place('b'), 1, entry)
    for (const entry of bytes('other')) await ledger.turn(place('b', 0, 1), 1, entry)
    const after = await again()
    expect(texts(after.journal('b.g0.e0', 1))).toEqual(['one', 'two'])
    for (const entry of bytes('three')) await after.turn(place('b'), 1, entry)
    const last = await again()
    expect(texts(last.journal('b.g0.e0', 1))).toEqual(['one', 'two', 'three'])
    expect(last.journal('b.g0.e0', 2)).toEqual([])
    await last.end(place('b'), endOf(0, 0), sealedOf('sealed'))
    expect(last.journal('b.g0.e0', 1)).toEqual([])
    expect(texts(last.journal('b.g0.e1', 1))).toEqual(['other'])
  })

  test('of groups that have left the oldest bytes go when newer ones need the room', async () => {
    const ledger = await open({ keepBytes: 6 })
    await withReady(ledger, 'b', 4)
    const leased = await ledger.lease('b', 3, 60, never)
    for (const one of handles(leased)) await ledger.ack('b', [one])
    // Behind the commit that lets them go.
    await ledger.keepNote('any', {})
    const kept = await Promise.all([0, 1, 2, 3].map((group) => ledger.episode(`b.g${group}.e0`)))
    expect(kept.map((one) => one !== null)).toEqual([false, true, true, true])
    await again()
    expect(await bench.ledger.episode('b.g0.e0')).toBeNull()
    expect(await bench.ledger.episode('b.g1.e0')).not.toBeNull()
  })

  test('of a forgotten batch only the id is known', async () => {
    const ledger = await open()
    await withReady(ledger, 'b', 1)
    await ledger.ack('b', handles(await ledger.lease('b', 1, 60, never)))
    await ledger.forget('b')
    const found = (await again()).resume()
    expect(found.batches).toEqual([])
    expect(found.submitted.get('b')).toBe('d')
    expect(bench.store.keys('event/')).toEqual([])
  })

  test('takes no more beyond its bytes, and says what to do', async () => {
    const ledger = await open({ maxBytes: 100_000 })
    await withReady(ledger, 'b', 0)
    expect(ledger.full()).toBeNull()
    await ledger.end(place('b'), endOf(0, 0), sealedOf('x'.repeat(100_000)))
    expect(ledger.full()).toMatch(
      /at most 100000; lease and acknowledge groups, or raise ledger.max_bytes/,
    )
  })

  describe('a record that is not what was written', () => {
    const damage = async (key: string) => {
      const good = bench.store.get(key)
      if (!good) throw new Error(`no record ${key}`)
      const bytes = Uint8Array.from(good)
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      await bench.store.commit([{ key, value: bytes }])
    }

    test('of sealed bytes: its group is undeliverable, the others are leased', async () => {
      const ledger = await open()
      await withReady(ledger, 'b', 2)
      await damage(keys.blob('b.g0.e0'))
      expect(ids(await ledger.lease('b', 2, 60, never))).toEqual(['b.g1'])
      expect(ledger.deliveries('b')).toMatchObject({ undeliverable: 1, leased: 1 })
      expect(bench.bad).toEqual([keys.blob('b.g0.e0')])
      expect(bench.store.keys('bad/')).toEqual([keys.bad(keys.blob('b.g0.e0'))])
    })

    test('of how a group stands: it is not handed out, for it may have been acknowledged', async () => {
      await withReady(await open(), 'b', 2)
      await damage(keys.delivery('b', 'b.g1'))
      const after = await again()
      expect(after.deliveries('b')).toMatchObject({ undeliverable: 1, ready: 1 })
    })

    test('of what happened: the batch says that its history has a hole', async () => {
      await withReady(await open(), 'b', 2)
      await damage(keys.event('b', 1))
      expect((await again()).resume().batches[0]?.damage).toContain('1 records')
    })

    test('of a batch: it is named as lost, at every start from then on, and the others go on', async () => {
      const ledger = await open()
      await withReady(ledger, 'b', 1)
      await withReady(ledger, 'c', 1)
      await damage(keys.batch('b'))
      for (const _ of [1, 2]) {
        const { batches, damaged } = (await again()).resume()
        expect([...damaged]).toEqual(['b'])
        expect(batches.map(({ entry }) => entry.id)).toEqual(['c'])
      }
    })

    test('of a reply: it and those behind it are asked for again', async () => {
      const ledger = await open()
      await withReady(ledger, 'b', 0)
      for (let k = 0; k < 3; k++) await ledger.turn(place('b'), 1, Uint8Array.of(k))
      await damage(keys.turn('b.g0.e0', 1, 1))
      const after = await again()
      expect(after.journal('b.g0.e0', 1).map((one) => one[0])).toEqual([0])
      await after.turn(place('b'), 1, Uint8Array.of(9))
      expect(after.journal('b.g0.e0', 1).map((one) => one[0])).toEqual([0, 9])
    })

    test('under another key is one too', async () => {
      const ledger = await open()
      await withReady(ledger, 'b', 2)
      const other = bench.store.get(keys.blob('b.g1.e0')) ?? null
      await bench.store.commit([{ key: keys.blob('b.g0.e0'), value: other }])
      expect(ids(await ledger.lease('b', 2, 60, never))).toEqual(['b.g1'])
    })
  })

  test('replies of an attempt that never ended go with its group', async () => {
    const ledger = await open()
    await ledger.submit({ id: 'b', request: '{}', digest: 'd', plan: {} })
    for (let k = 0; k < 3; k++) await ledger.turn(place('b'), 1, Uint8Array.of(k))
    // The server that finds them plays nothing of the batch: it never reads them.
    const after = await again()
    await after.settle('b', [settledOf('b', 0)], () => {})
    expect(bench.store.keys('turn/')).toEqual([])
  })

  test('a record of a newer schema is refused with a sentence', async () => {
    await withReady(await open(), 'b', 1)
    const key = keys.clock
    const newer = frame(key, new TextEncoder().encode('{}'), 3)
    await bench.store.commit([{ key, value: newer }])
    await expect(bench.again()).rejects.toThrow(
      /newer Paddock \(schema 3; this one reads up to 2\)/,
    )
    await bench.store
      .commit([{ key, value: frameJson(key, { seconds: 0, life: 0 }) }])
      .catch(() => {})
  })
})
