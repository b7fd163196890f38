// Suspects: one is played at a time, between two marks, whatever comes of it.
import { expect, test } from 'vitest'
import { createSuspects } from './suspects.ts'

test('each job stands between its two marks, and no two of them overlap', async () => {
  const suspects = createSuspects()
  const told: string[] = []
  const pool = (name: string, fails = false) =>
    suspects.watched(
      {
        async run() {
          told.push(`${name} plays`)
          if (fails) throw new Error('lost')
          return null as never
        },
      } as never,
      async (plays) => void told.push(`${name} ${plays}`),
    )
  const runs = [pool('a', true), pool('b')].map((one) => one.run('warm', null))
  expect((await Promise.allSettled(runs)).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
  ])
  expect(told).toEqual(['a true', 'a plays', 'a false', 'b true', 'b plays', 'b false'])
})
