// V01: a spec against its schema, each fault with the path, what was expected and what was found.
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { JsonObject } from '../../../protocol/json.ts'
import type { TaskProblem } from '../../environment.ts'
import { isEmail, shown } from '../kernel/values.ts'
import { problem } from './problem.ts'
import { TASK_SPEC_SCHEMA } from './schema.ts'

/** Faults of one spec that are put into words: each shows a part of it, and a hostile one has a hundred thousand. */
const MAX_FAULTS = 50
/** Choices up to here are named one by one. */
const MAX_NAMED_CHOICES = 12

let compiled: ValidateFunction | undefined

/** What of a spec does not have the form of one. Depth of checks is bounded by the body's own limit. */
export function formProblems(spec: JsonObject): TaskProblem[] {
  // Compiling takes 0.1 s: not before the first spec is looked at.
  compiled ??= compile()
  if (compiled(spec)) return []
  const causes = (compiled.errors ?? []).filter(isCause).slice(0, MAX_FAULTS)
  return causes.map((error) => problem('V01', pathOf(error), expectedBy(error), foundBy(error)))
}

function compile(): ValidateFunction {
  const { check, ...rest } = TASK_SPEC_SCHEMA.$defs as { check: JsonObject } & JsonObject
  const user = (TASK_SPEC_SCHEMA.properties as JsonObject).user as JsonObject
  // The kind of a check and the mode of a user choose their form; without that word, each form would report its faults.
  const by = (propertyName: string) => ({ type: 'object', discriminator: { propertyName } })
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    discriminator: true,
    strictTypes: false,
    strictRequired: false,
    formats: { email: isEmail },
  })
  return ajv.compile({
    ...TASK_SPEC_SCHEMA,
    properties: {
      ...(TASK_SPEC_SCHEMA.properties as JsonObject),
      user: { ...user, ...by('mode') },
    },
    $defs: { ...rest, check: { ...check, ...by('kind') } },
  })
}

/** Errors that only repeat that something within is wrong say nothing. */
const isCause = ({ keyword }: ErrorObject): boolean => !['oneOf', 'anyOf', 'if'].includes(keyword)

function pathOf({ instancePath, keyword, params }: ErrorObject): string {
  const parts = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (keyword === 'required') parts.push(String(params.missingProperty))
  if (keyword === 'additionalProperties') parts.push(String(params.additionalProperty))
  return parts.reduce(
    (path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path ? `${path}.${part}` : part),
    '',
  )
}

/** The value that is wrong: of a missing member nothing, of an unknown one its own. */
function foundBy({ keyword, params, data }: ErrorObject): string {
  if (keyword === 'required' || data === undefined) return 'nothing'
  if (keyword !== 'additionalProperties') return shown(data)
  return shown((data as JsonObject)[String(params.additionalProperty)])
}

function expectedBy({ keyword, message = '', params, data }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return `a member ${params.missingProperty}`
    case 'additionalProperties':
      return 'no such member'
    case 'const':
      return shown(params.allowedValue)
    case 'enum':
      return choices(params.allowedValues as unknown[], data)
    default:
      return message.replace(/^must be /, '')
  }
}

/** The values that may stand, or of a long list those that begin like the one that came. */
function choices(allowed: readonly unknown[], data: unknown): string {
  if (allowed.length <= MAX_NAMED_CHOICES) return `one of ${allowed.join(', ')}`
  const beginning = /^[^_.]*[_.]/.exec(String(data))?.[0]
  const alike = allowed.filter((value) => beginning && String(value).startsWith(beginning))
  return alike.length > 0
    ? `one of ${alike.join(', ')}`
    : `one of the ${allowed.length} names of the catalogue, such as ${allowed.slice(0, 3).join(', ')}`
}
