// In which of two forms Polar's clients read log-probabilities: no request tells, so what a listener takes is remembered.

/** One number a token, or, for the first generation, an object with `token_id` and `logprob`. */
export const LOGPROB_FORMS = ['numbers', 'entries'] as const
export type LogprobForm = (typeof LOGPROB_FORMS)[number]

/** What a listener made of a callback; `unread` is a body that does not fit its model. */
type Hearing = 'taken' | 'unread' | 'refused'

export interface LogprobForms {
  /** The form to begin with: the one that was read last. */
  now(): LogprobForm
  /** What is sent next, where a body of this form met this answer. */
  after(form: LogprobForm, heard: Hearing): LogprobForm
}

/** `auto` begins with numbers, and tries the other form on a listener that cannot read one. */
export function openLogprobForms(setting: LogprobForm | 'auto'): LogprobForms {
  let last: LogprobForm = setting === 'auto' ? 'numbers' : setting
  return {
    now: () => last,
    after(form, heard) {
      if (setting !== 'auto') return setting
      if (heard === 'taken') last = form
      if (heard !== 'unread') return form
      return form === 'numbers' ? 'entries' : 'numbers'
    },
  }
}

/** Its listener answers 200 to everything, and says `ok` in the body where it took it; whatever else answers is no listener. */
export function hearingOf(status: number, body: Uint8Array): Hearing {
  if (status < 200 || status > 299) return 'refused'
  const { ok, reason } = parse(body)
  if (ok === true) return 'taken'
  return ok === false && reason === 'invalid payload' ? 'unread' : 'refused'
}

function parse(body: Uint8Array): { ok?: unknown; reason?: unknown } {
  try {
    return (JSON.parse(new TextDecoder().decode(body)) ?? {}) as object
  } catch {
    return {}
  }
}
