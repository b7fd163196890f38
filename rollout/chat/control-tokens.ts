// Control tokens spelled out in text that the policy did not sample: templates and backends would make control ids of them.

/** The text's control tokens in the order in which they stand. */
type Finder = (text: string) => string[]

export interface ControlTokens {
  /** Any added token, those that only mark up (`<tool_call>`, `<think>`) included. */
  any: Finder
  /** Those that make up the conversation itself (`<|im_end|>`): the tokenizer calls them special. */
  special: Finder
}

/** Finders for the added tokens of a vocabulary. */
export function controlTokens(
  added: readonly { content: string; special: boolean }[],
): ControlTokens {
  const special = added.filter((token) => token.special)
  return { any: finder(added), special: finder(special) }
}

/** The text with its control tokens spelled so that they stay text: `‹/tool_call›`. For sentences of ours that name them. */
export function named(text: string, { any }: ControlTokens): string {
  const safe = (token: string) =>
    token.startsWith('<') ? `‹${token.slice(1).replace(/>$/, '›')}` : [...token].join(' ')
  return any(text).reduce((sentence, token) => sentence.replaceAll(token, safe(token)), text)
}

function finder(tokens: readonly { content: string }[]): Finder {
  const longestFirst = tokens
    .map(({ content }) => content)
    .filter((content) => content !== '')
    .sort((a, b) => b.length - a.length)
  if (longestFirst.length === 0) return () => []
  const escaped = longestFirst.map((content) => content.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const pattern = new RegExp(escaped.join('|'), 'g')
  return (text) => text.match(pattern) ?? []
}

/** Added tokens of Qwen2.5 and Qwen3 (151643 to 151668 in Qwen3's tokenizer.json), where no model folder is known. */
export const QWEN_CONTROL_TOKENS: ControlTokens = controlTokens([
  ...[
    ...['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
    ...['<|object_ref_start|>', '<|object_ref_end|>', '<|box_start|>', '<|box_end|>'],
    ...['<|quad_start|>', '<|quad_end|>', '<|vision_start|>', '<|vision_end|>'],
    ...['<|vision_pad|>', '<|image_pad|>', '<|video_pad|>'],
  ].map((content) => ({ content, special: true })),
  ...[
    ...[
      '<tool_call>',
      '</tool_call>',
      '<tool_response>',
      '</tool_response>',
      '<think>',
      '</think>',
    ],
    ...['<|fim_prefix|>', '<|fim_middle|>', '<|fim_suffix|>', '<|fim_pad|>'],
    ...['<|repo_name|>', '<|file_sep|>'],
  ].map((content) => ({ content, special: false })),
])
