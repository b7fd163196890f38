// Measures an environment inside its thread: what its calls, its share of a job and its grades take, for the metrics.
import type { Environment } from '../../../envs/environment.ts'

/** What one job spent in one environment; seconds. */
export interface Spent {
  env: string
  /** `tool` null: a name that the model was not offered. */
  calls: { tool: string | null; outcome: CallOutcome; seconds: number }[]
  graded: number | null
  /** All of it together. */
  seconds: number
}

type CallOutcome = 'ok' | 'tool_error' | 'bad_args' | 'timeout' | 'infra' | 'denied'

/** Error codes of the office's tools, which others may use too; every other refusal is the tool's. */
const OUTCOMES: Record<string, CallOutcome> = {
  INVALID_ARGUMENT: 'bad_args',
  UNKNOWN_TOOL: 'bad_args',
  PERMISSION_DENIED: 'denied',
  TIMEOUT: 'timeout',
}

export interface EnvironmentClock {
  /** The same environment, measured. */
  timed(name: string, environment: Environment): Environment
  /** What was spent since the last time; null where nothing was. */
  take(): Spent | null
}

/** `now` gives monotonic milliseconds. */
export function createEnvironmentClock(now = () => performance.now()): EnvironmentClock {
  let spent: Spent | null = null
  const of = (env: string): Spent => {
    spent ??= { env, calls: [], graded: null, seconds: 0 }
    return spent
  }

  function timed(name: string, environment: Environment): Environment {
    let offered = new Set<string>()
    const measure = <T>(run: () => T, ended: (seconds: number, result: T | null) => void): T => {
      const started = now()
      let result: T | null = null
      try {
        result = run()
        return result
      } finally {
        const seconds = (now() - started) / 1000
        of(name).seconds += seconds
        ended(seconds, result)
      }
    }
    const share = <T>(run: () => T) => measure(run, () => {})
    return {
      ...environment,
      reset: (task, seed) => share(() => environment.reset(task, seed)),
      open: (state) => share(() => environment.open(state)),
      hear: (state, message, turn) => share(() => environment.hear(state, message, turn)),
      reply: (state, message, turn, said) =>
        share(() => environment.reply(state, message, turn, said)),
      tools(state) {
        const tools = share(() => environment.tools(state))
        offered = new Set(namesOf(tools))
        return tools
      },
      step: (state, call, turn) =>
        measure(
          () => environment.step(state, call, turn),
          (seconds, step) =>
            of(name).calls.push({
              tool: offered.has(call.name) ? call.name : null,
              outcome: outcomeOf(step?.observation),
              seconds,
            }),
        ),
      grade: (state, answers) =>
        measure(
          () => environment.grade(state, answers),
          (seconds) => {
            // In parts, where it asks others in between.
            of(name).graded = (of(name).graded ?? 0) + seconds
          },
        ),
    }
  }

  return {
    timed,
    take() {
      const taken = spent
      spent = null
      return taken
    },
  }
}

/** A user's module may return anything; who guards it says what is wrong. */
function namesOf(tools: unknown): string[] {
  if (!Array.isArray(tools)) return []
  return tools.flatMap((tool) => tool?.function?.name ?? [])
}

function outcomeOf(seen: { content?: unknown; is_error?: unknown } | undefined): CallOutcome {
  if (!seen) return 'infra'
  if (seen.is_error !== true) return 'ok'
  const code = /"code":\s?"([A-Z_]+)"/.exec(String(seen.content).slice(0, 300))?.[1] ?? ''
  return OUTCOMES[code] ?? 'tool_error'
}
