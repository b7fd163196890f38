// `paddock replay --episode`: a stored episode from a file, its task found by name, and what is not there.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { loadConfig } from '../config.ts'
import { namedTask } from './named-task.ts'
import { readStoredEpisode, replayStored } from './replay-episode.ts'
import { runReplay } from './run-replay.ts'
import { keptStreams } from './streams.testkit.ts'

const EPISODE = fileURLToPath(
  new URL(
    '../../rollout/testdata/episodes/dev-06-assign-laptop-through-outage.json',
    import.meta.url,
  ),
)
const config = loadConfig({ file: null, flags: {} })
const home = mkdtempSync(join(tmpdir(), 'paddock-episode-'))
afterAll(() => rmSync(home, { recursive: true }))

async function run(file: string, toTurn?: number) {
  const { streams, out, err } = keptStreams()
  const stored = await readStoredEpisode(file)
  const named = await namedTask(stored.task, stored.environment, config)
  const code = replayStored(stored, named, toTurn, streams)
  return { code, answer: JSON.parse(out()), err: err() }
}

test('an episode that comes out as it did says so, whole or in part', async () => {
  const stored = await readStoredEpisode(EPISODE)
  expect(await run(EPISODE)).toMatchObject({
    code: 0,
    err: '',
    answer: { episode: stored.id, task: stored.task, same: true, turns: 9, difference: null },
  })
  expect((await run(EPISODE, 2)).answer).toMatchObject({ turns: 2, same: true })
})

test('one that does not names the turn, what differs and both values, and exits with 1', async () => {
  const stored = JSON.parse(readFileSync(EPISODE, 'utf8'))
  stored.turns[4].observations[0].content = 'another'
  const file = join(home, 'changed.json')
  writeFileSync(file, JSON.stringify(stored))
  const { code, answer, err } = await run(file)
  expect(code).toBe(1)
  expect(answer).toMatchObject({ same: false, turns: 5, difference: { at: { turn: 4 } } })
  expect(err).toMatch(/^paddock: turn 4: observations differs: expected .*another.*, found /)
})

test.each([
  [{}, 'give exactly one of --transcript'],
  [{ transcript: 'correct', episode: EPISODE }, 'give exactly one of --transcript'],
  [{ transcript: 'correct' }, 'name the task'],
  [{ episode: join(home, 'none.json') }, 'with --server <url> it is the id of an episode'],
  [
    { episode: fileURLToPath(new URL('../../package.json', import.meta.url)) },
    'expected an episode',
  ],
])('%j is refused: %s', async (flags, words) => {
  await expect(runReplay(undefined, { environment: 'office', ...flags }, config)).rejects.toThrow(
    words,
  )
})
