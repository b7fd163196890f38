// Reads task packs: a folder with pack.yaml and its tasks as JSON files. Nothing outside the folder is ever read.
import { readdir, readFile, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { z } from 'zod'
import { PaddockError } from '../../protocol/errors.ts'
import { idSchema } from '../../protocol/ids.ts'
import { isPlainObject, type JsonObject } from '../../protocol/json.ts'
import type { Config } from '../config.ts'

const packSchema = z
  .strictObject({
    name: idSchema,
    environment: idSchema,
    /** Folder of the task files, inside the pack. */
    tasks: z.string().optional(),
    /** Tasks that the environment makes itself. */
    generated: z
      .strictObject({ count: z.int().min(1).max(100_000), seed: z.int().min(0) })
      .optional(),
  })
  .refine((pack) => (pack.tasks === undefined) !== (pack.generated === undefined), {
    message: 'give exactly one of tasks (a folder) and generated ({count, seed})',
  })

export interface Pack {
  name: string
  environment: string
  /** Specs read from files; empty where the environment generates them. */
  specs: JsonObject[]
  generated: { count: number; seed: number } | null
}

/** The packs that come with Paddock. */
const SHIPPED_PACKS = ['office', 'arithmetic'].map((name) =>
  fileURLToPath(new URL(`../../envs/packs/${name}`, import.meta.url)),
)

/** The shipped packs, unless the configuration leaves them out, and its own. */
export function readPacks(config: Pick<Config, 'packs' | 'shipped_packs'>): Promise<Pack[]> {
  const folders = config.shipped_packs ? [...SHIPPED_PACKS, ...config.packs] : config.packs
  return Promise.all(folders.map(readPack))
}

/** Reads one pack; every failure is an `invalid_config` that names the file. */
async function readPack(folder: string): Promise<Pack> {
  const root = await realpath(folder).catch(() => {
    throw new PaddockError(
      'invalid_config',
      `packs: expected a folder with pack.yaml, got ${folder}`,
    )
  })
  const file = join(root, 'pack.yaml')
  const checked = packSchema.safeParse(parse(await readText(file)))
  if (!checked.success) {
    const [issue] = checked.error.issues
    throw new PaddockError(
      'invalid_config',
      `${file}: ${issue?.path.join('.') || 'pack'}: ${issue?.message}`,
    )
  }
  const { name, environment, tasks, generated } = checked.data
  const specs = tasks === undefined ? [] : await readSpecs(root, tasks)
  return { name, environment, specs, generated: generated ?? null }
}

async function readSpecs(root: string, tasks: string): Promise<JsonObject[]> {
  const folder = await inside(root, tasks)
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort()
  return Promise.all(
    names.map(async (name) => {
      const file = await inside(root, join(tasks, name))
      const spec: unknown = parseJson(file, await readText(file))
      if (!isPlainObject(spec))
        throw new PaddockError('invalid_config', `${file}: expected a JSON object`)
      return spec as JsonObject
    }),
  )
}

/** The real path of a part of the pack; links and `..` may not lead out of it. */
async function inside(root: string, part: string): Promise<string> {
  const path = isAbsolute(part)
    ? part
    : await realpath(join(root, part)).catch(() => join(root, part))
  const way = relative(root, path)
  if (way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way))
    throw new PaddockError('invalid_config', `${root}: ${part} leads out of the pack`)
  return path
}

async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: Error) => {
    throw new PaddockError('invalid_config', `${file} cannot be read: ${cause.message}`, { cause })
  })
}

function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new PaddockError('invalid_config', `${file}: ${(cause as Error).message}`, { cause })
  }
}
