// The torture notices a server whose store breaks its word: a harness that finds nothing proves nothing.
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type TortureOptions, type TortureResult, torture } from './torture.ts'

const broken = fileURLToPath(new URL('broken-server.testkit.ts', import.meta.url))

function run(fault: string, some: Partial<TortureOptions>): Promise<TortureResult> {
  const options = { minKills: 0, kills: 2, seconds: 180, seed: 11, fault: null, onKill: () => {} }
  return torture({ ...options, ...some, program: [broken, fault] })
}

test('an end that is told before it is kept is a lost episode', async () => {
  const { lost } = await run('early', { lifeHears: { episodes: 1, acked: 0 } })
  expect(lost.join()).toContain('was asked for again after its end was told')
}, 240_000)

test('an ack that is answered and not kept is a group that is leased again', async () => {
  const { twice } = await run('ack', { lifeHears: { episodes: 0, acked: 1 } })
  expect(twice.join()).toContain('was leased after its ack')
}, 240_000)

test('a finished group that is not kept is forgotten', async () => {
  const { forgotten } = await run('group', {})
  expect(forgotten.join()).toContain('"undeliverable"')
}, 240_000)

test('what is not done when the time is over is told, and nothing takes longer', async () => {
  const { forgotten, kills, seconds } = await run('mute', { kills: 1, seconds: 25 })
  expect(forgotten.join()).toContain('was not done when the time was over')
  expect(kills).toBe(1)
  expect(seconds).toBeLessThan(60)
}, 240_000)
