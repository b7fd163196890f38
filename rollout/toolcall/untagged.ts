// Whether plain content holds JSON that looks like a call which was written without its tags.
import { isPlainObject } from '../../protocol/json.ts'
import { readJsonNow } from './json-reader.ts'
import { Source } from './source.ts'

/**
 * True where the text holds a JSON object with a name and an object of arguments, bare, fenced or inside other tags
 * (Qwen2.5-Coder writes all three). Linear: an attempt that fails is not gone over again.
 */
export function looksLikeCall(text: string): boolean {
  const source = Source.of(text)
  for (let at = text.indexOf('{'); at >= 0; at = text.indexOf('{', at)) {
    const read = readJsonNow(source, at)
    if (read.kind === 'incomplete') return false
    if (read.kind === 'broken') {
      at = Math.max(read.at, at + 1)
      continue
    }
    const name = read.members?.get('name')?.value
    const hasArguments = isPlainObject(read.members?.get('arguments')?.value)
    if (typeof name === 'string' && name !== '' && hasArguments) return true
    at = read.end
  }
  return false
}
