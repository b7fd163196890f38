// Attempts that may have ended the process: a thread plays one of them at a time, and the ledger knows which.
import type { PlayerWorld } from '../batches/player.ts'

type Pool = PlayerWorld['pool']

export interface Suspects {
  /**
   * A pool for one suspect. Each of its jobs waits for those of the others, and `mark` is kept before it begins and after
   * it has ended: where the process dies in between, it is this attempt's death and no other's.
   */
  watched(pool: Pool, mark: (plays: boolean) => Promise<void>): Pool
}

/** One for the whole process, since any of them would end it for all. */
export function createSuspects(): Suspects {
  let last: Promise<unknown> = Promise.resolve()

  function alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }

  return {
    watched: (pool, mark) => ({
      ...pool,
      run: (kind, input, patience) =>
        alone(async () => {
          await mark(true)
          try {
            return await pool.run(kind, input, patience)
          } finally {
            await mark(false)
          }
        }),
    }),
  }
}
