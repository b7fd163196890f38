// Jobs that wait for a thread: in which order they are given out, to which thread, and until when.
import { existsSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { labPlan, writeLab } from '../../testkit/lab-environment.testkit.ts'
import { labPool } from '../../testkit/pool.testkit.ts'
import { openPatience } from './patience.ts'
import { GivenUp } from './pool.ts'

const lab = writeLab()

describe('of jobs that wait for a thread', () => {
  test('those that somebody waits for go before turns', async () => {
    const one = labPool(lab.module)
    const order: string[] = []
    const turns = Array.from({ length: 20 }, () =>
      one.run('begin', labPlan({})).then(() => order.push('turn')),
    )
    const settings = one.run('parse', { id: 'a', format: 'hermes', tools: [], text: 'hello' })
    await Promise.all([...turns, settings.then(() => order.push('settings'))])
    expect(order[0]).toBe('settings')
    await one.close()
  }, 120_000)

  test('one that failed goes behind the others', async () => {
    const one = labPool(lab.module)
    const order: string[] = []
    const troubled = one.run('begin', labPlan({ trouble: 'exit', at: 'reset' }))
    const failed = troubled.catch(() => order.push('failed'))
    const others = Array.from({ length: 12 }, () =>
      one.run('begin', labPlan({})).then(() => order.push('played')),
    )
    await Promise.all([failed, ...others])
    expect(order).toEqual([...Array(12).fill('played'), 'failed'])
    await one.close()
  }, 120_000)

  test('those that failed before never hold the last thread', async () => {
    const [module, release] = [lab.flag('failing.mjs'), lab.flag('failing-release')]
    // Ends its thread the first time, and holds the next one until it is released.
    writeFileSync(
      module,
      `import { existsSync, writeFileSync } from 'node:fs'
      import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
      export default { ...lab, reset(task) {
        const { path } = task.spec
        if (path && !existsSync(path)) { writeFileSync(path, ''); process.exit(3) }
        if (path) { writeFileSync(path + '-held', ''); while (!existsSync(${JSON.stringify(release)})); }
        return lab.reset(task)
      } }`,
    )
    const two = labPool(module, { threads: 2 })
    const paths = [lab.flag('failing-0'), lab.flag('failing-1')]
    let settled = 0
    const failing = paths.map((path) =>
      two.run('begin', labPlan({ path })).then(() => {
        settled++
      }),
    )
    const held = () => paths.filter((path) => existsSync(`${path}-held`)).length
    await expect.poll(held, { timeout: 30_000 }).toBe(1)
    // With both threads held these would never end.
    for (let turn = 0; turn < 20; turn++) await two.run('begin', labPlan({}))
    expect([held(), settled]).toEqual([1, 0])
    writeFileSync(release, '')
    await Promise.all(failing)
    await two.close()
  }, 120_000)

  test('one whose patience ends is given up at once, running or waiting', async () => {
    const one = labPool(lab.module)
    const withdraw = new AbortController()
    const patience = () => openPatience(performance.now() + 60_000, withdraw.signal)
    const begun = lab.flag('once-patience')
    const hang = labPlan({ trouble: 'hang', at: 'reset', once: begun })
    const given = [one.run('begin', hang, patience()), one.run('begin', labPlan({}), patience())]
    await expect.poll(() => existsSync(begun), { timeout: 30_000 }).toBe(true)
    withdraw.abort()
    // The thread hangs on: nobody waits for it.
    for (const job of given) await expect(job).rejects.toBeInstanceOf(GivenUp)
    expect(one.stats()).toMatchObject({ queued: 0, busy: 1 })
    await one.close()
  }, 120_000)

  test('those behind one that was given up are played once its thread is lost', async () => {
    const one = labPool(lab.module, { maxTurnSeconds: 2 })
    const withdraw = new AbortController()
    const begun = lab.flag('once-lost')
    const hang = labPlan({ trouble: 'hang', at: 'reset', once: begun })
    const given = one.run('begin', hang, openPatience(performance.now() + 60_000, withdraw.signal))
    await expect.poll(() => existsSync(begun), { timeout: 30_000 }).toBe(true)
    withdraw.abort()
    await expect(given).rejects.toBeInstanceOf(GivenUp)
    await expect(one.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
    await one.close()
  }, 120_000)
})

it('O07: turns that come one after another are shared by the threads', async () => {
  const two = labPool(lab.module, { threads: 2 })
  await two.ready()
  const busy = () => two.stats().busySeconds
  const isEven = () => Math.max(...busy()) < 2 * Math.min(...busy())
  // A turn that a busy machine held up is made good by the next ones.
  for (let turn = 0; turn < 100 || (turn < 10_000 && !isEven()); turn++) {
    const before = busy()
    await two.run('begin', labPlan({}))
    const worked = busy().findIndex((seconds, thread) => seconds !== before[thread])
    expect(before[worked]).toBe(Math.min(...before))
  }
  expect(isEven()).toBe(true)
  await two.close()
}, 120_000)
