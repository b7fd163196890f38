// The id of a task by its spec, in its pack or beside one.
import { ID_PATTERN } from '../../../protocol/ids.ts'
import { digest, type JsonObject } from '../../../protocol/json.ts'

/** The spec's own id where it is one, else a digest of the spec. */
export function specId(spec: JsonObject): string {
  return typeof spec.id === 'string' && ID_PATTERN.test(spec.id) ? spec.id : digest(spec)
}
