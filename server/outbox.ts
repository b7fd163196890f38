// What goes out on one WebSocket, at the pace of its reader: ws itself would queue without bound.
import type { WebSocket } from 'ws'

/** Above this many bytes unsent a sender waits. */
const PAUSE_BYTES = 1024 * 1024
/** Above this many nothing more is queued: the reader is given up. */
const CLOSE_BYTES = 4 * 1024 * 1024

export interface Outbox {
  /** Queues a message, and resolves once there is room for the next (at once, mostly). Never rejects. */
  send(message: string | Uint8Array): Promise<void>
  /** True while a sender waits for room. */
  readonly blocked: boolean
}

/**
 * `onStall` is called for a peer that takes nothing for `stallMs` while more than 1 MB waits, and for one for which
 * more than 4 MB would wait. One message may be larger than both: it is queued whole.
 */
export function createOutbox(socket: WebSocket, stallMs: number, onStall: () => void): Outbox {
  let waiting = 0
  return {
    get blocked() {
      return waiting > 0
    },
    async send(message) {
      if (socket.readyState !== socket.OPEN) return
      if (socket.bufferedAmount > CLOSE_BYTES) return onStall()
      let onFlushed = () => {}
      const flushed = new Promise<void>((resolve) => {
        onFlushed = resolve
      })
      // Called with an error where the socket closes first: its close event tells everyone who must know.
      socket.send(message, () => onFlushed())
      if (socket.bufferedAmount <= PAUSE_BYTES) return
      waiting++
      const watch = watchProgress(socket, stallMs, onStall)
      await flushed
      clearInterval(watch)
      waiting--
    },
  }
}

function watchProgress(socket: WebSocket, stallMs: number, onStall: () => void): NodeJS.Timeout {
  let before = socket.bufferedAmount
  return setInterval(() => {
    const now = socket.bufferedAmount
    if (now >= before) onStall()
    before = now
  }, stallMs)
}
