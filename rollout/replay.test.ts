// Stored episodes play again to the same states; what a changed service does to an old episode is told by its first turn.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { arithmetic } from '../envs/arithmetic/arithmetic.ts'
import { generateTask } from '../envs/arithmetic/tasks.ts'
import type { Environment, Task } from '../envs/environment.ts'
import { office } from '../envs/office/office.ts'
import { asTask, specs } from '../envs/office/transcripts.testkit.ts'
import { type StoredEpisode, storedEpisodeSchema } from '../protocol/trajectory.ts'
import { replayEpisode } from './replay.ts'

const FOLDER = new URL('testdata/episodes/', import.meta.url)
/** Episodes of an earlier day: the regression set. A change that alters one of them has to say so. */
const episodes = readdirSync(FOLDER).map(
  (file): StoredEpisode =>
    storedEpisodeSchema.parse(JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'))),
)

const [office6, office3] = ['dev-06', 'dev-03'].map(
  (id) => episodes.find(({ task }) => task.startsWith(`office/${id}`))!,
) as [StoredEpisode, StoredEpisode]

/** Generated tasks of the shipped arithmetic pack have this seed (pack.yaml). */
const ARITHMETIC_SEED = 1

function worldOf({ environment, task: id }: StoredEpisode): { world: Environment; task: Task } {
  const name = id.split('/')[1]!
  if (environment === 'arithmetic') {
    const spec = generateTask(Number(name.replace('sum-', '')), ARITHMETIC_SEED)
    return { world: arithmetic as Environment, task: { id, environment, spec } }
  }
  return { world: office as Environment, task: asTask(specs.find((spec) => spec.id === name)!) }
}

function played(stored: StoredEpisode, change: Partial<Environment> = {}, toTurn?: number) {
  const { world, task } = worldOf(stored)
  const options = toTurn === undefined ? {} : { toTurn }
  return replayEpisode(stored, task, { ...world, ...change }, options)
}

test.each(episodes)('$task of the regression set comes out as it did', (stored) => {
  const replay = played(stored)
  expect(replay.difference).toBeNull()
  expect(replay).toMatchObject({ turns: stored.turns.length, grade: 'same' })
  expect(replay.hashes).toEqual([stored.state_hash, ...stored.turns.map((turn) => turn.state_hash)])
})

test('the set has refused calls, a user who answers, injected faults, and both environments', () => {
  const seen = JSON.stringify(episodes)
  for (const sign of ['INVALID_JSON', '"role":"user"', 'RATE_LIMITED', '"arithmetic"', '"office"'])
    expect(seen).toContain(sign)
})

test('a replay may stop before the end', () => {
  expect(played(office6, {}, 3)).toMatchObject({
    turns: 3,
    grade: 'not_compared',
    difference: null,
  })
  expect(played(office6, {}, 3).hashes).toHaveLength(4)
  expect(played(office6, {}, 0)).toMatchObject({ turns: 0, difference: null })
})

describe('what has changed is told by the first turn that shows it', () => {
  const { world } = worldOf(office6)
  const firstWith = (tool: string, stored = office6) =>
    stored.turns.findIndex(({ calls }) => calls.some(({ name }) => name === tool))

  test('a tool that answers otherwise', () => {
    const step: Environment['step'] = (state, call, turn) => {
      const done = world.step(state, call, turn)
      const { observation } = done
      return call.name === 'assets_assign'
        ? { ...done, observation: { ...observation, content: `${observation.content} ` } }
        : done
    }
    const turn = firstWith('assets_assign')
    expect(turn).toBeGreaterThan(0)
    expect(played(office6, { step }).difference).toMatchObject({
      at: { turn },
      part: 'observations',
    })
  })
  test('a tool that writes otherwise and says nothing of it', () => {
    const step: Environment['step'] = (state, call, turn) => {
      const done = world.step(state, call, turn)
      return call.name === 'todo_create'
        ? { ...done, state: { ...(done.state as object), quietly: true } }
        : done
    }
    const turn = firstWith('todo_create')
    expect(played(office6, { step })).toMatchObject({
      turns: turn + 1,
      difference: { at: { turn }, part: 'state_hash', expected: office6.turns[turn]!.state_hash },
    })
  })
  test('a user who says something else', () => {
    const stored = episodes.find(
      ({ messages }) => messages.filter(({ role }) => role === 'user').length > 1,
    )!
    const own = worldOf(stored).world
    const reply: Environment['reply'] = (state, message, turn) => {
      const answer = own.reply(state, message, turn)
      return 'say' in answer ? { ...answer, say: `${answer.say}!` } : answer
    }
    expect(played(stored, { reply }).difference).toMatchObject({ part: 'messages' })
  })
  test('another seed of records, and another opening', () => {
    const { task } = worldOf(office6)
    const spec = { ...task.spec, clock: { now: '2027-05-05T09:00:00+02:00' } }
    expect(replayEpisode(office6, { ...task, spec }, world).difference).toMatchObject({
      at: 'reset',
      part: 'state_hash',
    })
    const open = () => [{ role: 'user' as const, content: 'Hello.' }]
    expect(played(office6, { open }).difference).toMatchObject({ at: 'reset', part: 'messages' })
  })
  test('a grader that judges otherwise', () => {
    const grade: Environment['grade'] = (state) => {
      const graded = world.grade(state)
      return graded.status === 'scored'
        ? { ...graded, rewards: { ...graded.rewards, score: 0.5 } }
        : graded
    }
    expect(played(office3, { grade })).toMatchObject({
      grade: 'differs',
      difference: { at: 'grade', part: 'grade' },
    })
  })
  test('a text that the parser reads otherwise', () => {
    const turns = office3.turns.with(1, { ...office3.turns[1]!, text: 'Nothing to do.' })
    expect(played({ ...office3, turns }).difference).toMatchObject({
      at: { turn: 1 },
      part: 'calls',
    })
  })
})
