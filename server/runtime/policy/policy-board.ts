// What trainers announced of each backend: the version it serves, its epoch, and whether it is paused.
import { PaddockError } from '../../../protocol/errors.ts'
import type { Patience } from '../threads/patience.ts'

export interface Announced {
  version: number | null
  /** The one before it: replies of it are still on their way during an update. */
  previous: number | null
  /** Grows where a version steps back on purpose, as a training that starts again does. */
  epoch: number
  /** When it began, seconds of the ledger's clock; groups that were begun before are of another training. */
  epochAt: number
  paused: boolean
}

interface Announcement {
  version?: number
  /** The version may be any: groups that were begun before are never leased to the new training. */
  new_epoch?: boolean
  pause?: boolean
}

export interface PolicyBoard {
  of(backend: string): Announced
  /** Throws PaddockError `conflict` for a version that steps back. Running turns are left to finish. `at`: ledger time. */
  announce(backend: string, announcement: Announcement, at: number): Announced
  /** What was announced before a restart. */
  restore(backend: string, announced: Announced): void
  /** Resolves when the backend is not paused, or patience has ended. */
  resumed(backend: string, patience: Patience): Promise<void>
}

const UNKNOWN: Announced = { version: null, previous: null, epoch: 0, epochAt: 0, paused: false }

export function createPolicyBoard(): PolicyBoard {
  const known = new Map<string, Announced>()
  /** Ends every wait for a resume, so that it looks again. */
  const waiting = new Set<() => void>()
  const of = (backend: string) => known.get(backend) ?? UNKNOWN
  return {
    of,
    announce(backend, announcement, at) {
      const now = announced(backend, of(backend), announcement, at)
      known.set(backend, now)
      if (!now.paused) for (const wake of waiting) wake()
      return now
    },
    restore: (backend, announced) => void known.set(backend, announced),
    async resumed(backend, patience) {
      while (of(backend).paused && !patience.ended()) await patience.wait(null, waiting)
    },
  }
}

function announced(
  backend: string,
  before: Announced,
  { version, new_epoch = false, pause }: Announcement,
  at: number,
): Announced {
  if (version !== undefined && before.version !== null && version < before.version && !new_epoch)
    throw new PaddockError(
      'conflict',
      `backend ${backend} is at version ${before.version}; a version never goes back: announce a higher one, or a training that starts again with new_epoch`,
      { path: 'version' },
    )
  const isNewer = version !== undefined && version !== before.version
  return {
    version: version ?? before.version,
    previous: isNewer ? (new_epoch ? null : before.version) : before.previous,
    epoch: before.epoch + Number(new_epoch),
    epochAt: new_epoch ? at : before.epochAt,
    paused: pause ?? before.paused,
  }
}
