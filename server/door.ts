// The open port before there is a house behind it: who finds it taken hears so before anything else is loaded.
import type { Config } from './config.ts'
import { type Listener, type ListenOptions, listen } from './listen.ts'

/** What answers once the house is built. */
type Answering = Required<Pick<ListenOptions, 'fetch' | 'upgrade'>>

export interface Door {
  listener: Listener
  /** Lets in who waits at the door, and all who come after. */
  open(house: Answering): void
}

/** Requests that come before the door is opened wait. Throws PaddockError `invalid_config` where the port cannot be had. */
export async function takeDoor({ server, limits }: Config): Promise<Door> {
  let open: Door['open'] = () => {}
  const house = new Promise<Answering>((resolve) => {
    open = resolve
  })
  const listener = await listen({
    host: server.host,
    port: server.port,
    maxConnections: limits.max_connections,
    fetch: async (request, env) => (await house).fetch(request, env),
    upgrade: (request, socket, head) => {
      house.then(({ upgrade }) => upgrade(request, socket, head)).catch(() => socket.destroy())
    },
  })
  return { listener, open }
}
