// What a task of any environment may declare for the engine beside its environment's own spec: `on_parse_error`.
import type { JsonObject } from '../protocol/json.ts'
import { ON_PARSE_ERROR, type OnParseError } from '../protocol/parse-codes.ts'
import type { Environment, Task, TaskProblem } from './environment.ts'

interface Declaration {
  /** Null where the task declares nothing, or what nobody knows. */
  onParseError: OnParseError | null
  problems: TaskProblem[]
  /** The spec as its environment knows it. */
  spec: JsonObject
}

/** Takes the declaration out of a task file or an inline spec. */
export function readDeclaration(declared: JsonObject): Declaration {
  if (!Object.hasOwn(declared, KEY)) return { onParseError: null, problems: [], spec: declared }
  const { [KEY]: said, ...spec } = declared
  const onParseError = ON_PARSE_ERROR.find((rule) => rule === said) ?? null
  return { onParseError, problems: onParseError === null ? [unknownRule(said)] : [], spec }
}

/** The same environment for tasks with declarations: none of its functions sees them, `describe` tells them. */
export function withDeclarations(environment: Environment): Environment {
  const bare = (task: Task): Task => ({ ...task, spec: readDeclaration(task.spec).spec })
  return {
    ...environment,
    problems(declared, gate) {
      const { problems, spec } = readDeclaration(declared)
      return [...problems, ...environment.problems(spec, gate)]
    },
    describe(task) {
      const { onParseError } = readDeclaration(task.spec)
      const description = environment.describe(bare(task))
      return onParseError === null ? description : { ...description, [KEY]: onParseError }
    },
    reset: (task, seed) => environment.reset(bare(task), seed),
  }
}

const KEY = 'on_parse_error'

function unknownRule(said: unknown): TaskProblem {
  const expected = `one of ${ON_PARSE_ERROR.join(', ')}`
  const found = JSON.stringify(said)
  const message = `V01 ${KEY}: expected ${expected}, found ${found}`
  return { rule: 'V01', path: KEY, expected, found, message }
}
