// A simulator with two short scripts, and a client that reads its replies, for the tests of this folder.
import { afterAll } from 'vitest'
import type { SimulatorOptions } from './options.ts'
import { parseScripts } from './policy/script.ts'
import { type Simulator, startSimulator } from './server.ts'

/** The first turn of the box script, at temperature 0. */
export const CALL = '<tool_call>\n{"name": "stock_get", "arguments": {"sku": "A-1"}}\n</tool_call>'
/** The second one. */
export const ANSWER = 'There are 42. \u00ff \u6570'
export const RAW_TEXT = 'one two three four five'

const SCRIPTS = [
  {
    match: 'How many boxes?',
    transcripts: {
      correct: { steps: [{ call: 'stock_get', args: { sku: 'A-1' } }, { say: ANSWER }] },
      wrong: { steps: [{ say: 'Seven.' }] },
    },
  },
  { match: 'Say it raw.', transcripts: { correct: { steps: [{ raw: RAW_TEXT }] } } },
]

export const TOOLS = [
  {
    type: 'function',
    function: { name: 'stock_get', description: '', parameters: { type: 'object' } },
  },
]
export const ASKED = [{ role: 'user', content: 'How many boxes?' }]
export const RAW = [{ role: 'user', content: 'Say it raw.' }]
export const RAW_PROMPT = '<|im_start|>user\nSay it raw.<|im_end|>\n<|im_start|>assistant\n'
export const AFTER_CALL = [
  ...ASKED,
  {
    role: 'assistant',
    content: '',
    tool_calls: [
      { id: 'c1', type: 'function', function: { name: 'stock_get', arguments: '{"sku":"A-1"}' } },
    ],
  },
  { role: 'tool', tool_call_id: 'c1', content: '42 boxes' },
]

interface LogprobEntry {
  token: string
  logprob: number
  bytes: number[]
  top_logprobs: { token: string; logprob: number }[]
}

export interface ChatChoice {
  message: { content: string; tool_calls: unknown[]; reasoning_content: string | null }
  logprobs: { content: LogprobEntry[] }
  finish_reason: string
  stop_reason: unknown
  token_ids: number[]
}

export interface ChatReply {
  prompt_token_ids: number[]
  choices: [ChatChoice]
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number }
}

export interface GenerateReply {
  text: string
  output_ids: number[]
  meta_info: {
    finish_reason: { type: string; length?: number }
    prompt_tokens: number
    completion_tokens: number
    weight_version: string
    weight_versions: { version: string; start: number; end: number }[]
    output_token_logprobs: [number, number, string | null][]
  }
}

interface StatsReply {
  requests: Record<string, number>
  tokens: { prompt: number; completion: number }
  faults: Record<string, number>
  in_flight: number
  records: unknown[]
  prepared: { kept: number; replies: number; cpu_us_per_reply: number | null }
}

export interface Client {
  url: string
  /** Status and parsed body. */
  post<Body>(path: string, body: unknown): Promise<{ status: number; body: Body }>
  get<Body>(path: string): Promise<Body>
  /** A chat completion of the box conversation, with ids. */
  chat(fields?: object): Promise<ChatReply>
  generate(fields: object): Promise<GenerateReply>
  stats(): Promise<StatsReply>
}

/** Starts simulators that end with the test file. */
export function simulatorsOfThisFile(): (options?: Partial<SimulatorOptions>) => Promise<Client> {
  const started: Simulator[] = []
  afterAll(async () => {
    await Promise.all(started.map((simulator) => simulator.close()))
  })
  const scripts = parseScripts(SCRIPTS.map((script) => JSON.stringify(script)).join('\n'))
  return async (options = {}) => {
    const simulator = await startSimulator({ scripts, ...options })
    started.push(simulator)
    return clientOf(simulator.url)
  }
}

export function clientOf(url: string): Client {
  const post = async <Body>(path: string, body: unknown) => {
    const response = await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Body }
  }
  const get = async <Body>(path: string) => (await (await fetch(`${url}${path}`)).json()) as Body
  const chat = async (fields: object = {}) => {
    const body = { messages: ASKED, return_token_ids: true, ...fields }
    return (await post<ChatReply>('/v1/chat/completions', body)).body
  }
  const generate = async (fields: object) => (await post<GenerateReply>('/generate', fields)).body
  return { url, post, get, chat, generate, stats: () => get<StatsReply>('/simulator/stats') }
}
