// `paddock bench parser`: what reading a policy's turn costs, beside a plain pass over the same text in the same run.
import type { ToolDefinition } from '../../protocol/conversation.ts'
import { createChatModel } from '../../rollout/chat/qwen-chat-model.ts'
import { createParser } from '../../rollout/toolcall/create-parser.ts'
import { readModelFolder } from '../runtime/threads/model-folder.ts'
import { aligned, type MeasureOptions, measurements, medians } from './measure.ts'
import { qwenFolder } from './playground.ts'
import type { Streams } from './streams.ts'

type Format = 'hermes' | 'qwen3-coder'

/** Turns of a text: what a policy says in the middle of an episode, about 1 kB each. */
const TURNS = 400
const CHUNK = 4
/** Two formats of two texts are read in three ways; the tokenizer goes both ways. */
const WAYS = 2 * 2 * 3 + 2

const TOOLS: ToolDefinition[] = [
  {
    type: 'function',
    function: {
      name: 'file_write',
      description: 'Writes a file.',
      parameters: {
        type: 'object',
        properties: {
          path: { type: 'string' },
          text: { type: 'string' },
          mode: { type: 'integer' },
        },
      },
    },
  },
]

/** Writes a table, or with `json` one object: medians over the rounds, MB/s of UTF-8 and ids/s. */
export async function benchParser(
  options: MeasureOptions,
  { stdout, stderr }: Pick<Streams, 'stdout' | 'stderr'> = process,
): Promise<void> {
  const progress = measurements(WAYS, options, stderr)
  const measure = (ways: Record<string, () => number>) => medians(ways, options, progress.measured)
  const parser = (['hermes', 'qwen3-coder'] as const).flatMap((format) =>
    Object.entries(texts(format)).map(([text, turns]) => ({
      format,
      text,
      mb_per_s: measure(readings(format, turns)),
    })),
  )
  const model = createChatModel(await readModelFolder('the bench', qwenFolder()))
  const plain = turnTexts('hermes').join('\n')
  const ids = model.encodePlain(plain)
  const tokenizer = measure({
    encode: () => model.encodePlain(plain).length / 1e6,
    decode: () => {
      model.decode(ids)
      return ids.length / 1e6
    },
  })
  const tokens = Object.fromEntries(
    Object.entries(tokenizer).map(([way, million]) => [way, Math.round(million * 1e6)]),
  )
  progress.stop()
  stdout.write(
    options.json ? `${JSON.stringify({ parser, ids_per_s: tokens })}\n` : table(parser, tokens),
  )
}

/** Each way of reading gives the MB (10^6 bytes) that it went over. */
function readings(format: Format, turns: readonly string[]): Record<string, () => number> {
  const megabytes = turns.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 1e6
  const inChunks = turns.map((text) =>
    Array.from({ length: Math.ceil(text.length / CHUNK) }, (_, k) =>
      text.slice(k * CHUNK, (k + 1) * CHUNK),
    ),
  )
  const parse = (chunked: readonly (readonly string[])[]) => {
    let calls = 0
    for (const chunks of chunked) {
      const parser = createParser({ format, tools: TOOLS, thinking: 'none' })
      for (const chunk of chunks) parser.feed(chunk)
      calls += parser.end('stop').calls.length
    }
    if (calls === 0) throw new Error('the bench has read no call')
    return megabytes
  }
  const plainPass = format === 'hermes' ? plainHermes : plainCoder
  return {
    plain: () => {
      for (const text of turns) plainPass(text)
      return megabytes
    },
    whole: () => parse(turns.map((text) => [text])),
    chunks: () => parse(inChunks),
  }
}

/** The least that any reader does: finds the tags, reads the JSON between. Nothing is checked. */
function plainHermes(text: string): unknown[] {
  const calls: unknown[] = []
  for (let at = text.indexOf('<tool_call>'); at >= 0; at = text.indexOf('<tool_call>', at)) {
    const end = text.indexOf('</tool_call>', at)
    calls.push(JSON.parse(text.slice(at + '<tool_call>'.length, end)))
    at = end
  }
  return calls
}

/** The same for the XML form: values are cut out as they stand. */
function plainCoder(text: string): string[] {
  const values: string[] = []
  for (let at = text.indexOf('<parameter='); at >= 0; at = text.indexOf('<parameter=', at)) {
    const end = text.indexOf('</parameter>', at)
    values.push(text.slice(text.indexOf('>', at) + 1, end))
    at = end
  }
  return values
}

function texts(format: Format): Record<string, string[]> {
  const big = SOURCE.repeat(Math.ceil(1e6 / SOURCE.length))
  return { turns: turnTexts(format), 'one 1 MB argument': [callText(format, 'big.txt', big)] }
}

function turnTexts(format: Format): string[] {
  return Array.from(
    { length: TURNS },
    (_, k) =>
      `I look at part ${k} of the work first, and then I write the file — größer als 7 kB is 超过.\n${callText(format, `src/part-${k}.ts`, SOURCE)}`,
  )
}

const SOURCE = Array.from(
  { length: 12 },
  (_, k) => `export const row${k} = (items) => items.map((item) => "<b>" + item.name + "</b>")\n`,
).join('')

function callText(format: Format, path: string, text: string): string {
  if (format === 'hermes') {
    const call = { name: 'file_write', arguments: { path, text, mode: 420 } }
    return `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`
  }
  const parameter = (name: string, value: string) => `<parameter=${name}>\n${value}\n</parameter>\n`
  const parameters = parameter('path', path) + parameter('text', text) + parameter('mode', '420')
  return `<tool_call>\n<function=file_write>\n${parameters}</function>\n</tool_call>`
}

function table(
  parser: readonly { format: string; text: string; mb_per_s: Record<string, number> }[],
  idsPerS: Record<string, number>,
): string {
  const rows = [
    ['MB/s', '', 'whole', `${CHUNK}-char chunks`, 'plain pass', 'whole/plain'],
    ...parser.map(({ format, text, mb_per_s: { whole = 0, chunks = 0, plain = 0 } }) => [
      format,
      text,
      whole.toFixed(1),
      chunks.toFixed(1),
      plain.toFixed(1),
      (whole / plain).toFixed(3),
    ]),
  ]
  const tokenizer = Object.entries(idsPerS).map(([way, ids]) => `${way} ${ids} ids/s`)
  return `${aligned(rows, 2)}\n\ntokenizer: ${tokenizer.join(', ')}\n`
}
