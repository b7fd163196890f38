// A reply as the ledger's journal keeps it, with the mark of the request that it answered.
import { crc32 } from 'node:zlib'
import { packMap, unpack } from '../../../protocol/msgpack.ts'
import type { EpisodeRequest, HttpReply } from '../../../rollout/request.ts'

/** What is compared of a request that is made again over the journal. */
type Asked = Pick<EpisodeRequest, 'kind' | 'turn' | 'body'>

/** An attempt cannot go on as it was: what its journal answers is not what is asked now. */
export class JournalMismatch extends Error {
  /** `where` it differs, as `turn 3`. */
  constructor(where: string) {
    super(
      `${where} is not what it was before the restart: task, environment, model files or server have changed meanwhile`,
    )
    this.name = 'JournalMismatch'
  }
}

export function journalEntry(request: Asked, reply: HttpReply): Uint8Array {
  return packMap({ asked: markOf(request), ...reply })
}

/** The reply of an entry; throws JournalMismatch where it answered another request. */
export function journaledReply(entry: Uint8Array, request: Asked): HttpReply {
  const { asked, ...reply } = unpack(entry) as HttpReply & { asked: number }
  if (asked !== markOf(request)) throw new JournalMismatch(`turn ${request.turn}`)
  // A view would take the whole entry along to the worker.
  return { ...reply, body: Uint8Array.from(reply.body) }
}

function markOf({ kind, turn, body }: Asked): number {
  return crc32(body, crc32(`${kind} ${turn}`))
}
