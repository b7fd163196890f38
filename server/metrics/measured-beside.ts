// Whoever is asked beside the policy, with each request counted and timed.
import type { Beside } from '../runtime/asking/beside.ts'
import type { LabelValue } from './labels.ts'
import type { Metrics } from './metrics.ts'

/** `now` gives monotonic milliseconds. */
export function measuredBeside(
  beside: Beside,
  metrics: Pick<Metrics, 'asked'>,
  now = () => performance.now(),
): Beside {
  return {
    async ask(request, deadline, signal) {
      const started = now()
      const limit = 'timeoutMs' in request ? started + request.timeoutMs : deadline
      const reply = await beside.ask(request, deadline, signal)
      const late = now() >= Math.min(limit, deadline)
      metrics.asked(request.kind, resultOf(reply.status, late), (now() - started) / 1000)
      return reply
    },
  }
}

/** Status 0 stands for no reply at all. */
function resultOf(status: number, late: boolean): LabelValue<'request_result'> {
  if (status === 0) return late ? 'timeout' : 'unavailable'
  return status < 300 ? 'ok' : status >= 500 || status === 429 ? 'unavailable' : 'invalid'
}
