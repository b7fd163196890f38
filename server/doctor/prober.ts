// Single completions through the engine's own dialect: each is asked for once and read in both ways.
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'
import { TOOL_FORMATS } from '../../protocol/parse-codes.ts'
import type { ChatModel } from '../../rollout/chat/chat-model.ts'
import { parseTurn } from '../../rollout/parse-turn.ts'
import type { PolicyReply, PromptTurn } from '../../rollout/policy/dialect.ts'
import { dialects } from '../../rollout/policy/dialects.ts'
import { missingTools } from '../../rollout/policy/missing-tools.ts'
import type { PolicyAnswer } from '../runtime/policy/policy-try.ts'
import type { Asker } from './asker.ts'
import { isCompletion } from './engine-checks.ts'
import type { EndpointProbe, Probe, Subject, ToolTurn } from './evidence.ts'

interface Asked {
  messages: readonly Message[]
  tools?: readonly ToolDefinition[]
  temperature: number
  seed: number
  maxTokens: number
}

/** What a task shows its policy first. */
export interface Opening {
  task: string
  messages: readonly Message[]
  tools: readonly ToolDefinition[]
}

export interface Prober {
  /** A completion of one token, which only a living engine gives. */
  first(): Promise<Pick<EndpointProbe, 'answer' | 'loose' | 'skewSeconds'>>
  /** The prompt that can be answered in many ways. */
  plain(temperature: number, seed: number): Promise<Probe>
  /** The first turn of a task, with its tools. */
  toolTurn(opening: Opening, seed: number): Promise<ToolTurn>
  /** Asks for one token behind a conversation. */
  behind(messages: readonly Message[], tools: readonly ToolDefinition[]): Promise<Probe>
}

/** Asked of a policy that has no tools: the first word decides, and many are possible. */
const PLAIN: readonly Message[] = [
  { role: 'user', content: 'Name a town that you would like to see, and say why in one sentence.' },
]
const PLAIN_TOKENS = 48
const TOOL_TURN_TOKENS = 512

export function createProber(
  subject: Subject,
  model: ChatModel | null,
  asker: Pick<Asker, 'post'>,
): Prober {
  const dialect = dialects[subject.dialect]
  const { stream } = subject

  function promptOf(messages: readonly Message[], tools: readonly ToolDefinition[]) {
    if (subject.mode === 'chat' || !model) return null
    return model.encode(model.render(messages, tools, { addGenerationPrompt: true, kwargs: {} }))
  }

  async function complete(asked: Asked): Promise<{ answer: PolicyAnswer; probe: Probe }> {
    const { messages, tools = [], temperature, seed, maxTokens } = asked
    const promptIds = promptOf(messages, tools)
    const sampling = { temperature, seed, top_p: 1, max_tokens: maxTokens }
    const turn: PromptTurn = {
      ...{ model: subject.model, messages, tools, promptIds, sampling },
      chatTemplateKwargs: {},
      stopTokenIds: model?.stopTokenIds ?? [],
      stream,
    }
    const answer = await asker.post(dialect.request(turn))
    const read = (tokens: boolean): PolicyReply => {
      if (answer.kind === 'failure')
        return { kind: 'infra_backend', field: '', message: answer.reason || 'no answer in time' }
      const knowsId = tokens ? (model?.knowsId ?? null) : null
      const expect = { tokens, promptIds, maxTokens, knowsId, sampling, stream }
      return dialect.read(answer.status, answer.headers, answer.body, expect)
    }
    return { answer, probe: { temperature, seed, strict: read(true), loose: read(false) } }
  }

  const bareTokens = async ({ messages }: Opening): Promise<number | null> => {
    if (subject.mode === 'tokens') return null
    const { probe } = await complete({ messages, temperature: 1, seed: 1, maxTokens: 1 })
    return promptTokens(probe)
  }

  return {
    async first() {
      const { answer, probe } = await complete({
        ...{ messages: PLAIN, temperature: 1, seed: 1, maxTokens: 1 },
      })
      if (answer.kind === 'failure') return { answer, loose: null, skewSeconds: null }
      const date = Date.parse(answer.headers.date ?? '')
      const skewSeconds = Number.isNaN(date) ? null : (Date.now() - date) / 1000
      return { answer, loose: probe.loose, skewSeconds }
    },
    plain: async (temperature, seed) =>
      (await complete({ messages: PLAIN, temperature, seed, maxTokens: PLAIN_TOKENS })).probe,
    async toolTurn(opening, seed) {
      const { task, messages, tools } = opening
      const [{ probe }, bare] = await Promise.all([
        complete({ messages, tools, temperature: 1, seed, maxTokens: TOOL_TURN_TOKENS }),
        bareTokens(opening),
      ])
      const seen =
        promptOf(messages, tools) ?? (isCompletion(probe.strict) && probe.strict.promptIds)
      return {
        task,
        probe,
        ...readings(textOf(probe), tools),
        missing: model && seen ? missingTools(model.decode(seen), tools, messages) : null,
        promptTokens: promptTokens(probe),
        bareTokens: bare,
      }
    },
    behind: async (messages, tools) =>
      (await complete({ messages, tools, temperature: 1, seed: 1, maxTokens: 1 })).probe,
  }

  /** How many calls come out where the answer is read as each form, and whether it thinks. */
  function readings(
    text: string | null,
    tools: readonly ToolDefinition[],
  ): Pick<ToolTurn, 'calls' | 'thinks'> {
    if (text === null) return { calls: null, thinks: null }
    const reading = { thinking: subject.thinking, leniencies: [] }
    const counts = TOOL_FORMATS.map((toolFormat) => {
      const { calls } = parseTurn(text, 'stop', tools, { ...reading, toolFormat })
      return [toolFormat, calls.length]
    })
    return { calls: Object.fromEntries(counts), thinks: /<\/?think>/.test(text) }
  }

  /** As an episode reads it: of the sampled ids where they can be decoded, else the engine's own. */
  function textOf({ strict, loose }: Probe): string | null {
    if (model && isCompletion(strict) && strict.ids) {
      const ended = model.stopTokenIds.includes(strict.ids.at(-1) ?? -1)
      return model.decode(ended ? strict.ids.subarray(0, -1) : strict.ids)
    }
    return isCompletion(loose) ? loose.content : null
  }
}

function promptTokens({ strict, loose }: Probe): number | null {
  const read = [strict, loose].find(isCompletion)
  return read ? read.usage.promptTokens : null
}
