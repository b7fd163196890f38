// `paddock replay --episode`: a stored episode from a file, its task found by name, and what is not there.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { loadConfig } from '../config.ts'
import { openHouse } from '../testkit/house.testkit.ts'
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
  [{ episode: join(home, 'none.json') }, 'name the --ledger <folder> or the --server <url>'],
  [
    { episode: fileURLToPath(new URL('../../package.json', import.meta.url)) },
    'expected an episode',
  ],
])('%j is refused: %s', async (flags, words) => {
  await expect(runReplay(undefined, { environment: 'office', ...flags }, config)).rejects.toThrow(
    words,
  )
})

test('an episode is found by its id, in the ledger and on the server that played it', async () => {
  const path = join(home, 'ledger')
  const house = await openHouse({ office: true, tokens: false, settings: { ledger: { path } } })
  try {
    const { groups } = await house.run({
      tasks: [{ task: 'office/dev-05-share-the-right-file' }],
      group_size: 2,
      mode: 'eval',
      policy: { sampling: { max_tokens: 256 } },
    })
    const episode = groups[0]!.episodes[0]!.id
    const kept = loadConfig({ file: null, flags: { ledger: { path } } })
    expect(await runReplay(undefined, { environment: 'office', episode }, kept)).toBe(0)
    const server = house.url
    expect(await runReplay(undefined, { environment: 'office', episode, server }, config)).toBe(0)
    const none = { environment: 'office', episode: 'nobody' }
    await expect(runReplay(undefined, none, kept)).rejects.toThrow('nobody')
    await expect(runReplay(undefined, { ...none, server }, config)).rejects.toThrow('nobody')
    // A batch is no episode.
    const batch = { environment: 'office', episode: groups[0]!.batch }
    await expect(runReplay(undefined, batch, kept)).rejects.toThrow('expected an episode')
  } finally {
    await house.close()
  }
}, 60_000)
