// One kept conversation through every step on its way: what its calls say afterwards is compared with what they said before.
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'
import { canonicalJson, type JsonValue } from '../../protocol/json.ts'
import { sealBlob, trajectoryOf } from '../../protocol/sealed.ts'
import type { ChatModel } from '../../rollout/chat/chat-model.ts'
import { parseTurn } from '../../rollout/parse-turn.ts'
import { dialects } from '../../rollout/policy/dialects.ts'
import { isCompletion, isFault } from './engine-checks.ts'
import type { RoundTripStep, Subject } from './evidence.ts'
import type { Prober } from './prober.ts'

const text = (description: string) => ({ type: 'string', description })

/** A parameter of every JSON type. */
const TOOLS: readonly ToolDefinition[] = [
  {
    type: 'function',
    function: {
      name: 'shelve_parcel',
      description: 'Puts a parcel on a shelf.',
      parameters: {
        type: 'object',
        properties: {
          label: text('What is written on it.'),
          count: { type: 'integer' },
          weight: { type: 'number' },
          fragile: { type: 'boolean' },
          tags: { type: 'array', items: { type: 'string' } },
          place: { type: 'object', properties: { row: text('As on the wall.') } },
        },
        required: ['label'],
      },
    },
  },
]

const ASKED = 'Shelve both parcels.'

/** Text that looks like a number or a truth value, line feeds, quotes, and letters of other scripts. */
const ARGUMENTS = [
  '{"label": "007", "count": 7, "weight": 0.5, "fragile": true, "tags": ["a b", "ü"], "place": {"row": "1"}}',
  '{"label": "true \\"as said\\"\\n數", "count": 0, "weight": 2, "fragile": false, "tags": [], "place": {}}',
]
const CALL_IDS = ['call_first', 'call_second']

const CONVERSATION: readonly Message[] = [
  { role: 'user', content: ASKED },
  {
    role: 'assistant',
    content: '',
    tool_calls: ARGUMENTS.map((written) => ({
      type: 'function',
      function: { name: 'shelve_parcel', arguments: written },
    })),
  },
  ...CALL_IDS.map(
    (id): Message => ({
      role: 'tool',
      name: 'shelve_parcel',
      tool_call_id: id,
      content: 'Shelved.',
    }),
  ),
]

interface Said {
  name: string
  arguments: string
}

/** The steps that this backend has: its wire form and its own template only where it renders. */
export async function roundTrip(
  subject: Subject,
  model: ChatModel | null,
  { behind }: Pick<Prober, 'behind'>,
): Promise<RoundTripStep[]> {
  const steps: RoundTripStep[] = []
  const add = (step: string, difference: string | null) => steps.push({ step, difference })
  if (model) {
    const prompt = model.render(CONVERSATION, TOOLS, { addGenerationPrompt: true, kwargs: {} })
    add('template', callsDiffer(prompt, subject, model))
    const again = model.decode(model.encode(prompt))
    add('tokens', again === prompt ? null : 'the prompt’s ids decode to another text')
  }
  if (subject.mode === 'chat') {
    add('wire', wireDiffers(subject))
    const { strict, loose } = await behind(CONVERSATION, TOOLS)
    const seen = model && isCompletion(strict) && strict.promptIds
    if (isFault(loose) && isFault(strict)) add('engine', refusal(loose))
    else if (seen) add('engine', callsDiffer(model.decode(seen), subject, model))
  }
  if (steps.length > 0) add('store', storeDiffers())
  return steps
}

/** A reply that is broken is another check's; here only a refused conversation counts. */
function refusal({ kind, message }: { kind: string; message: string }): string | null {
  return kind === 'infra_backend' ? `the engine refuses the conversation: ${message}` : null
}

/** The assistant's turn of a prompt, read by the parser that reads the policy. */
function callsDiffer(prompt: string, subject: Subject, model: ChatModel): string | null {
  const behind = prompt.slice(prompt.lastIndexOf(ASKED) + ASKED.length)
  const endOfTurn = model.decode(model.stopTokenIds.slice(0, 1))
  const turn = behind.split(endOfTurn)[1] ?? ''
  const reading = { toolFormat: subject.toolFormat, thinking: 'none', leniencies: [] } as const
  const { calls, errors } = parseTurn(turn, 'stop', TOOLS, reading)
  const [error] = errors
  if (error) return `the calls cannot be read as ${subject.toolFormat}: ${error.message}`
  return saidDiffers(calls.map(({ name, arguments_json }) => ({ name, arguments: arguments_json })))
}

function wireDiffers(subject: Subject): string | null {
  const { body } = dialects[subject.dialect].request({
    ...{ model: subject.model, messages: CONVERSATION, tools: TOOLS, promptIds: null },
    sampling: { temperature: 1, top_p: 1, max_tokens: 1, seed: 1 },
    chatTemplateKwargs: {},
    stopTokenIds: [],
  })
  const { messages } = JSON.parse(new TextDecoder().decode(body)) as { messages: WireMessage[] }
  const calls = messages.flatMap(({ tool_calls }) => tool_calls ?? [])
  const results = messages.flatMap(({ tool_call_id }) => tool_call_id ?? [])
  const ids = calls.map(({ id }) => id)
  if (ids.join() !== results.join() || results.join() !== CALL_IDS.join())
    return `calls ${ids.join(', ')} have results for ${results.join(', ')}`
  return saidDiffers(calls.map((call) => call.function))
}

interface WireMessage {
  tool_calls?: { id: string; function: Said }[]
  tool_call_id?: string
}

function storeDiffers(): string | null {
  const { blob, rowBytes } = sealBlob(null, [], CONVERSATION)
  const kept = trajectoryOf({ header: { row_bytes: rowBytes }, blob })
  const read = JSON.parse(new TextDecoder().decode(kept)) as JsonValue
  return canonicalJson(read) === canonicalJson(CONVERSATION) ? null : 'the record reads otherwise'
}

/** Names and arguments with their types; digits may be written in another way. */
function saidDiffers(calls: readonly Said[]): string | null {
  if (calls.length !== ARGUMENTS.length)
    return `${calls.length} calls come out of ${ARGUMENTS.length}`
  for (const [index, call] of calls.entries()) {
    if (call.name !== 'shelve_parcel') return `call ${index + 1} is of ${call.name}`
    const [was, is] = [ARGUMENTS[index] as string, call.arguments].map((written) =>
      canonicalJson(JSON.parse(written)),
    )
    if (was !== is) return `the arguments ${was} come out as ${is}`
  }
  return null
}
