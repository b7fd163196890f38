// `paddock`, which kills itself at one moment of the first answer that hands groups to slime.
import { ServerResponse } from 'node:http'

/** `held`: all but the last byte is out; `noted`: the last byte is about to go; `out`: it is out. */
const moment = process.env.KILL_AT
const die = () => {
  process.kill(process.pid, 'SIGKILL')
}
const isPoll = ({ req }: ServerResponse) => req.url === '/get_rollout_data'
const { write, end } = ServerResponse.prototype as unknown as Record<
  'write' | 'end',
  (this: ServerResponse, bytes?: Uint8Array, ...rest: unknown[]) => unknown
>

Object.assign(ServerResponse.prototype, {
  write(this: ServerResponse, bytes: Uint8Array, ...rest: unknown[]) {
    return isPoll(this) && moment === 'held'
      ? write.call(this, bytes, die)
      : write.call(this, bytes, ...rest)
  },
  end(this: ServerResponse, bytes?: Uint8Array, ...rest: unknown[]) {
    const isLastByte = isPoll(this) && bytes?.length === 1
    if (isLastByte && moment === 'noted') die()
    if (isLastByte && moment === 'out') this.prependOnceListener('finish', die)
    return end.call(this, bytes, ...rest)
  },
})

await import('../main.ts')
