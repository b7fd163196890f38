import { describe, expect, test } from 'vitest'
import { bridgeIds, learnBridge } from './bridge.ts'
import { compileChatTemplate } from './chat-template.ts'
import { qwen3Files } from './qwen3.testkit.ts'
import { createTextCodec } from './text-codec.ts'

const { tokenizer, config } = qwen3Files()
const codec = createTextCodec(tokenizer, config)

/** The text of a bridge that a template leads to. */
function bridgeText(template: string, messages: [role: string, content: string][]): string {
  const compiled = compileChatTemplate(template, null)
  const shape = learnBridge(
    messages.map(([role]) => role),
    '<|im_end|>',
    (conversation) => compiled.render([['messages', conversation]]),
  )
  return codec.decode(
    bridgeIds(
      shape,
      messages.map(([, content]) => content),
      codec,
    ),
  )
}

/** ChatML in which `tool` writes tool results, as the families differ in nothing else here. */
const chatml = (tool: string, generation = '<|im_start|>assistant\\n') => `
{%- for message in messages %}
{%- if message.role == 'tool' %}${tool}
{%- else %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}{{- '${generation}' }}`

const OPEN = `{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{% endif %}`
const CLOSE = `{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{% endif %}`
const hermes = chatml(
  `${OPEN}{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}${CLOSE}`,
)
const coder = chatml(
  `${OPEN.replace('user', 'user\\n')}{{- '<tool_response>\\n' + message.content + '\\n</tool_response>\\n' }}${CLOSE}`,
)
const trimming = chatml(
  `${OPEN}{{- '\\n<tool_response>\\n' + message.content|trim + '\\n</tool_response>' }}${CLOSE}`,
  '<|im_start|>assistant\\n<think>\\n',
)

const results: [string, string][] = [
  ['tool', 'A'],
  ['tool', ' B\n'],
]

// Expected forms: what Python writes for "tool-then-user" and its like with the templates of the families.
describe('the form of tool results is the family’s own', () => {
  test('Qwen2.5, Qwen3: each result after a newline', () => {
    expect(bridgeText(hermes, results)).toBe(
      '\n<|im_start|>user\n<tool_response>\nA\n</tool_response>\n<tool_response>\n B\n\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('Qwen3-Coder: a newline before the end of the turn', () => {
    expect(bridgeText(coder, [...results, ['user', 'only the first']])).toBe(
      '\n<|im_start|>user\n<tool_response>\nA\n</tool_response>\n<tool_response>\n B\n\n</tool_response>\n<|im_end|>\n<|im_start|>user\nonly the first<|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('Qwen3.5 and later: contents trimmed, thinking opened', () => {
    expect(bridgeText(trimming, results)).toBe(
      '\n<|im_start|>user\n<tool_response>\nA\n</tool_response>\n<tool_response>\nB\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n',
    )
  })

  test('Qwen2.5-VL: a turn of role tool for each result', () => {
    const vl = chatml(`{{- '<|im_start|>tool\\n' + message.content + '<|im_end|>\\n' }}`)
    expect(bridgeText(vl, results)).toBe(
      '\n<|im_start|>tool\nA<|im_end|>\n<|im_start|>tool\n B\n<|im_end|>\n<|im_start|>assistant\n',
    )
  })
})

describe('a template that cannot be continued is refused', () => {
  test.each([
    ['it drops tool results', chatml(''), /drops the content of a message of role tool/],
    [
      'it ends no turn',
      `{% for m in messages %}{{ m.content }}{% endfor %}`,
      /end an assistant turn/,
    ],
    [
      'it writes something after the answer',
      `{% for m in messages %}{{ m.content + ' (said)<|im_end|>' }}{% endfor %}`,
      /end an assistant turn/,
    ],
  ])('because %s', (_, template, message) => {
    expect(() => bridgeText(template, results)).toThrow(message)
  })
})
