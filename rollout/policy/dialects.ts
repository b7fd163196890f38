// The policy dialects by name, as a backend's configuration gives it.
import type { Dialect } from './dialect.ts'
import { sglang } from './sglang.ts'
import { vllm } from './vllm.ts'
import { vllmGenerate } from './vllm-generate.ts'

/** Each tells in `modes` how a policy may be asked. */
export const dialects = { vllm, 'vllm-generate': vllmGenerate, sglang } as const satisfies Record<
  string,
  Dialect
>

export type DialectName = keyof typeof dialects
