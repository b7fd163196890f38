// What an engine says of itself: its release, its models and their context, the version of its weights.
import { isPlainObject, type JsonObject, type JsonValue } from '../../protocol/json.ts'
import type { Asker } from './asker.ts'
import type { EngineFacts } from './evidence.ts'

/** vLLM: /version, /weight_info. SGLang: /get_server_info, /get_weight_version. Both: /v1/models. */
export async function engineFacts(asker: Asker, model: string): Promise<EngineFacts> {
  const paths = ['/v1/models', '/version', '/get_server_info'] as const
  const [models, version, server] = await Promise.all(paths.map(asker.get))
  const [vllmWeights, sglangWeights] = await Promise.all(
    ['/weight_info', '/get_weight_version'].map(asker.get),
  )
  const cards = cardsOf(models?.json)
  const card = cards?.find(({ id }) => id === model) ?? cards?.[0]
  return {
    kind: kindOf(version?.json != null, server?.json != null, card),
    release: text(version?.json?.version) ?? text(server?.json?.version),
    models: cards?.flatMap(({ id }) => text(id) ?? []) ?? null,
    maxModelLen: count(card?.max_model_len) ?? count(server?.json?.context_length),
    weightVersion:
      text(vllmWeights?.json?.weight_version) ?? text(sglangWeights?.json?.weight_version),
  }
}

/** The one model of an engine that is given by its address alone; null where it does not say. */
export async function servedModel(asker: Asker): Promise<string | null> {
  const [card] = cardsOf((await asker.get('/v1/models'))?.json) ?? []
  return text(card?.id)
}

function kindOf(isVllm: boolean, isSglang: boolean, card?: JsonObject): EngineFacts['kind'] {
  if (isSglang || card?.owned_by === 'sglang') return isVllm ? null : 'sglang'
  return isVllm ? 'vllm' : null
}

function cardsOf(models: JsonObject | null | undefined): JsonObject[] | null {
  const data = models?.data
  return Array.isArray(data) ? (data.filter(isPlainObject) as JsonObject[]) : null
}

function text(value: JsonValue | undefined): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}

function count(value: JsonValue | undefined): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null
}
