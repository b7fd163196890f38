// Reads task packs: a folder with pack.yaml and its tasks as JSON files. Nothing outside the folder is ever read.
import { hash } from 'node:crypto'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { JUDGE } from '../../../envs/office/grading/custom-check.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import { idSchema } from '../../../protocol/ids.ts'
import type { Config } from '../../config.ts'
import { parseYamlTree } from '../../yaml-tree.ts'
import type { GraderSource } from '../asking/grader-setup.ts'
import { contentHash } from './content-hash.ts'
import { readTaskFile, type TaskFile, unreadable } from './task-file.ts'

const packSchema = z
  .strictObject({
    name: idSchema,
    environment: idSchema,
    /** Folder of the task files, inside the pack. */
    tasks: z.string().optional(),
    /** Custom graders: name to JavaScript module, inside the pack. */
    graders: z.record(idSchema, z.string().min(1)).default({}),
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
  /** Its task files by name, those that cannot be read among them; empty where the environment generates the tasks. */
  files: TaskFile[]
  generated: { count: number; seed: number } | null
  /** Its custom graders by name. */
  graders: Record<string, GraderSource>
  /** SHA-256 over names and bytes of all its files. */
  hash: string
}

/** The folder of a pack that comes with Paddock. */
export function shippedPack(name: 'office' | 'arithmetic'): string {
  return fileURLToPath(new URL(`../../../envs/packs/${name}`, import.meta.url))
}

const SHIPPED_PACKS = (['office', 'arithmetic'] as const).map(shippedPack)

/** The shipped packs, unless the configuration leaves them out, and its own. */
export function readPacks(config: Pick<Config, 'packs' | 'shipped_packs'>): Promise<Pack[]> {
  const folders = config.shipped_packs ? [...SHIPPED_PACKS, ...config.packs] : config.packs
  return Promise.all(folders.map(readPack))
}

/**
 * Reads one pack. What is wrong with the pack itself is thrown as `invalid_config` that names the file; a task file that
 * cannot be read, or that a link places outside the pack, is a problem of that task.
 */
export async function readPack(folder: string): Promise<Pack> {
  const root = await realpath(folder).catch(() => {
    throw invalid(`packs: expected a folder with pack.yaml, got ${folder}`)
  })
  const { name, environment, tasks, generated, graders } = await readManifest(root)
  const files = tasks === undefined ? [] : await readTasks(root, tasks)
  const packHash = await contentHash(root)
  return {
    name,
    environment,
    files,
    generated: generated ?? null,
    graders: await readGraders(root, graders),
    hash: packHash,
  }
}

/**
 * The pack that a file lies in, by the nearest folder above it that has a pack.yaml; null where none has, or where that one
 * cannot be read: then the file stands for itself.
 */
export async function packAround(file: string): Promise<Pack | null> {
  for (let folder = dirname(resolve(file)); ; folder = dirname(folder)) {
    const found = await stat(join(folder, 'pack.yaml')).catch(() => null)
    if (found?.isFile()) return readPack(folder).catch(() => null)
    if (folder === dirname(folder)) return null
  }
}

/** All packs' custom graders. One name means one grader: throws `invalid_config` where two packs mean two by it. */
export function gradersOf(packs: readonly Pack[]): Record<string, GraderSource> {
  const known: Record<string, GraderSource> = {}
  for (const pack of packs)
    for (const [name, grader] of Object.entries(pack.graders)) {
      if (known[name] && known[name].hash !== grader.hash)
        throw invalid(`pack ${pack.name}: graders.${name}: another pack has a grader of that name`)
      known[name] = grader
    }
  return known
}

async function readGraders(
  root: string,
  graders: Record<string, string>,
): Promise<Record<string, GraderSource>> {
  const read = Object.entries(graders).map(async ([name, part]) => {
    if (name === JUDGE)
      throw invalid(`${root}: graders.${JUDGE}: that name means the judge; choose another`)
    const file = await inside(root, part)
    if (file === null)
      throw invalid(
        `${root}: graders.${name}: expected a file inside the pack, and ${part} leads out of it`,
      )
    const source = await readText(file)
    return [name, { source, hash: hash('sha256', source) }] as const
  })
  return Object.fromEntries(await Promise.all(read))
}

async function readManifest(root: string): Promise<z.output<typeof packSchema>> {
  const file = await inside(root, 'pack.yaml')
  if (file === null) throw invalid(`${root}: pack.yaml leads out of the pack`)
  const checked = packSchema.safeParse(parseYaml(file, await readText(file)))
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  throw invalid(`${file}: ${issue?.path.join('.') || 'pack'}: ${issue?.message}`)
}

async function readTasks(root: string, tasks: string): Promise<TaskFile[]> {
  const folder = await inside(root, tasks)
  if (folder === null)
    throw invalid(`${root}: tasks: expected a folder inside the pack, and ${tasks} leads out of it`)
  const names = await readdir(folder).catch((cause: Error) => {
    throw invalid(`${root}: tasks: ${folder} cannot be read: ${cause.message}`, cause)
  })
  return Promise.all(
    names
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map(async (name) => {
        const file = join(tasks, name)
        const path = await inside(root, file)
        return path === null
          ? unreadable(file, 'a file inside the pack', 'a link that leads out of it')
          : readTaskFile(path, file)
      }),
  )
}

/** The real path of a part of the pack; null for an absolute one, and where links or `..` lead out of it. */
async function inside(root: string, part: string): Promise<string | null> {
  if (isAbsolute(part)) return null
  const named = join(root, part)
  const path = await realpath(named).catch(() => named)
  const way = relative(root, path)
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way) ? null : path
}

async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: Error) => {
    throw invalid(`${file} cannot be read: ${cause.message}`, cause)
  })
}

function parseYaml(file: string, text: string): unknown {
  try {
    return parseYamlTree(text)
  } catch (cause) {
    throw invalid(`${file}: ${(cause as Error).message}`, cause)
  }
}

const invalid = (message: string, cause?: unknown): PaddockError =>
  new PaddockError('invalid_config', message, cause === undefined ? {} : { cause })
