// The closed lists of what a tool-call parser refuses (errors) and what it takes but reports (flags).

/** 23 codes: a block with one of them contributes no call. */
export const PARSE_ERRORS = [
  'TRUNCATED_CALL',
  'UNCLOSED_CALL',
  'EMPTY_CALL',
  'WRONG_FORMAT',
  'INVALID_JSON',
  'TRAILING_DATA',
  'NOT_AN_OBJECT',
  'DUPLICATE_KEY',
  'DUPLICATE_PARAMETER',
  'MISSING_NAME',
  'INVALID_NAME',
  'MISSING_ARGUMENTS',
  'ARGUMENTS_NOT_OBJECT',
  'MALFORMED_TAG',
  'UNEXPECTED_TEXT',
  'MULTIPLE_FUNCTIONS',
  'UNCLOSED_FUNCTION',
  'UNCLOSED_PARAMETER',
  'MISSING_OPEN_TAG',
  'TYPE_MISMATCH',
  'PARAM_INVALID_JSON',
  'STRAY_CLOSE_TAG',
  'REASONING_UNCLOSED',
] as const
export type ParseErrorCode = (typeof PARSE_ERRORS)[number]

/** 18 flags: the call or text is taken, the fact is reported. */
export const PARSE_FLAGS = [
  'TEXT_AFTER_CALL',
  'UNKNOWN_FUNCTION',
  'UNKNOWN_PARAMETER',
  'EXTRA_KEYS',
  'PYTHON_LITERAL',
  'AMBIGUOUS_TYPE',
  'TAG_IN_VALUE',
  'LITERAL_TAG',
  'PARTIAL_TAG',
  'FENCED_CALL',
  'UNTAGGED_CALL',
  'LONE_SURROGATE',
  'UNRESOLVED_REF',
  'THINK_OPEN_MISSING',
  'THINK_DUPLICATE_OPEN',
  'THINK_NOT_AT_START',
  'STRAY_THINK_CLOSE',
  'TOOL_CALL_IN_REASONING',
] as const
export type ParseFlag = (typeof PARSE_FLAGS)[number]

/** Lenient readings that a caller may ask for; the parser says which of them made a difference. */
export const LENIENCIES = [
  'closeAtStop',
  'thinkingEndsAtToolCall',
  'acceptBareFunction',
  'acceptUnclosedParameter',
  'json5',
] as const
export type Leniency = (typeof LENIENCIES)[number]

/**
 * What a refused call does to its episode: `feedback` tells the policy and goes on, `end` ends it as it stands (`ok`,
 * graded), `unscored` ends it as `parse_error` without a reward.
 */
export const ON_PARSE_ERROR = ['feedback', 'end', 'unscored'] as const
export type OnParseError = (typeof ON_PARSE_ERROR)[number]

export const TOOL_FORMATS = ['hermes', 'qwen3-coder', 'qwen-fncall', 'react'] as const
export type ToolFormat = (typeof TOOL_FORMATS)[number]

/** How the prompt left reasoning: no think tags, the model's own choice, or an open `<think>`. */
export const THINKING_MODES = ['none', 'auto', 'prefilled'] as const
export type ThinkingMode = (typeof THINKING_MODES)[number]
