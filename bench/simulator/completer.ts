// A completion request from body to reply: read it, play the turn, wait, bend it by faults, write and send it.
import type { ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { FaultKind, FaultPlan, FaultRule } from './faults.ts'
import { abortAfter, bend, createFaultPlan, TRANSPORT_FAULTS } from './faults.ts'
import { createFlights } from './flights.ts'
import type { SimulatorOptions } from './options.ts'
import type { Ask, Generation } from './policy/completion.ts'
import type { Conversation } from './policy/conversation.ts'
import { readPrompt } from './policy/conversation.ts'
import type { Model } from './policy/model.ts'
import { createPolicy } from './policy/policy.ts'
import type { PreparedReply } from './prepared.ts'
import { createPreparedReplies, requestKey } from './prepared.ts'
import { createStats } from './stats.ts'
import { createVersionHistory } from './versions.ts'
import { readJson } from './wire/refused.ts'
import type { SglangForm } from './wire/sglang.ts'
import { readGenerate, writeGenerate, writeGenerateStream } from './wire/sglang.ts'
import { isSglangChat, readSglangChat, writeSglangChat } from './wire/sglang-chat.ts'
import type { Payload } from './wire/transport.ts'
import { jsonPayload, send, sendDamaged, sendInstead, streamPayload } from './wire/transport.ts'
import type { Served, VllmForm } from './wire/vllm.ts'
import { readChat, readCompletion, readTokens } from './wire/vllm.ts'
import { writeReply } from './wire/vllm-reply.ts'
import { writeStream } from './wire/vllm-stream.ts'

export const COMPLETION_PATHS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/inference/v1/generate',
  '/generate',
] as const

/** How far a wrong clock is behind. */
const CLOCK_OFF_MS = 3_600_000

type CompletionPath = (typeof COMPLETION_PATHS)[number]

export interface Completer {
  complete(path: CompletionPath, body: Buffer, response: ServerResponse): Promise<void>
  /** Ends requests under way with what was sampled so far; null means all. Prepared replies go their way. */
  abort(id: string | null): void
  setFaults(rules: readonly FaultRule[]): void
  weightVersion(): string | null
  setWeightVersion(version: string): void
  countRequest(path: string): void
  /** Requests that a reply lies prepared for, for a load test to send again. */
  preparedRequests(): { path: string; body: string }[]
  report(): object
}

export function createCompleter(served: Served, settings: SimulatorOptions): Completer {
  const policy = createPolicy(served.model, settings)
  const stats = createStats(settings)
  const flights = createFlights()
  const prepared = createPreparedReplies()
  let faults: FaultPlan = createFaultPlan(settings.faults, settings.seed)
  const versions = createVersionHistory(settings.weightVersion)

  /** Plays the turn, waits out its time, and stamps what was sampled by then. */
  const sampleInTime = async (id: string, ask: Ask, conversation: Conversation, hit: Hit) => {
    const played = policy(ask, conversation, hit)
    const start = performance.now()
    const landing = await flights.wait(id, played.latencyMs)
    const whole = played.generation
    const sampled =
      landing.share === 1
        ? whole
        : abortAfter(whole, served.model, landing.share * whole.usage.completion)
    const spans = versions.spans(start, landing.at, sampled.usage.completion)
    const version = spans.at(-1)?.version ?? versions.current()
    return { played, sampled: { ...sampled, version, versions: spans } }
  }

  const completeFresh = async (
    path: CompletionPath,
    body: Buffer,
    key: string,
    response: ServerResponse,
  ): Promise<void> => {
    const json = readJson(body)
    const asked = readAsk(path, json, served, true)
    const conversation = readPrompt(asked.ask.promptText)
    const hit = faults.drawFor({ key: String(asked.ask.seed ?? key), conversation })
    stats.faults(hit.keys())
    if (hit.has('clock'))
      response.setHeader('date', new Date(Date.now() - CLOCK_OFF_MS).toUTCString())
    const transport = TRANSPORT_FAULTS.find((kind) => hit.has(kind))
    if (transport && sendInstead(response, transport)) return

    const { form, ask } = hit.has('dropstools') ? readAsk(path, json, served, false) : asked
    const { played, sampled } = await sampleInTime(form.id, ask, conversation, hit)
    const { seed, latencyMs, share } = played
    const record = { path, seed, prompt_tokens: sampled.usage.prompt, ids: sampled.ids }
    stats.completion({ ...record, faults: [...hit.keys()] })
    const generation = bend(sampled, hit, served.model, share)
    const payload = write(served.model, form, ask, generation, latencyMs / 1000)
    const rule = transport && hit.get(transport)
    if (transport && rule) return sendDamaged(response, transport, payload, rule, share)
    send(response, payload)
    const isCurrent = sampled.finish !== 'abort' && sampled.version === versions.current()
    if (settings.prepared && hit.size === 0 && isCurrent)
      prepared.set(key, { payload, latencyMs, body, record: { ...record, faults: [] } })
  }

  const completePrepared = async (reply: PreparedReply, response: ServerResponse) => {
    if (reply.latencyMs > 0) await setTimeout(reply.latencyMs)
    stats.completion(reply.record)
    send(response, reply.payload)
  }

  return {
    async complete(path, body, response) {
      const key = requestKey(path, body)
      const reply = settings.prepared ? prepared.get(key) : undefined
      if (reply) return completePrepared(reply, response)
      prepared.pause()
      return completeFresh(path, body, key, response)
    },
    abort: flights.abort,
    setFaults(rules) {
      faults = createFaultPlan(rules, settings.seed)
      prepared.clear()
    },
    weightVersion: () =>
      faults.rules.some(({ kind }) => kind === 'noversion') ? null : versions.current(),
    setWeightVersion(next) {
      versions.update(next)
      prepared.clear()
    },
    countRequest: stats.request,
    preparedRequests: prepared.requests,
    report: () => ({
      ...stats.report(),
      in_flight: flights.count(),
      ...(settings.prepared && { prepared: prepared.report() }),
    }),
  }
}

type Form = VllmForm | SglangForm
type Hit = ReadonlyMap<FaultKind, FaultRule>

function readAsk(
  path: CompletionPath,
  body: unknown,
  served: Served,
  withTools: boolean,
): { form: Form; ask: Ask } {
  if (path === '/generate') return readGenerate(body, served)
  if (path === '/v1/completions') return readCompletion(body, served)
  if (path === '/inference/v1/generate') return readTokens(body, served)
  if (isSglangChat(body)) return readSglangChat(body, served, withTools)
  return readChat(body, served, withTools)
}

function write(
  model: Model,
  form: Form,
  ask: Ask,
  generation: Generation,
  seconds: number,
): Payload {
  if ('logprobText' in form) {
    // The turns before this one, which an engine with a prefix cache has seen.
    const times = { cached: ask.promptIds.lastIndexOf(model.endId) + 1, seconds }
    if (form.kind === 'sglang-chat')
      return jsonPayload(writeSglangChat(model, form, ask, generation, times))
    return form.stream
      ? streamPayload(writeGenerateStream(model, form, generation, times))
      : jsonPayload(writeGenerate(model, form, generation, times))
  }
  return form.stream
    ? streamPayload(writeStream(model, form, ask, generation))
    : jsonPayload(writeReply(model, form, ask, generation))
}
