// `paddock validate`: the whole gate over task files and packs, one JSON line a task.
import { stat } from 'node:fs/promises'
import { SingleBar } from 'cli-progress'
import type { Environment, TaskProblem } from '../../envs/environment.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { gradersOf, type Pack, packAround, readPack, readPacks } from '../runtime/packs/packs.ts'
import { readTaskFile, type TaskFile, unreadable } from '../runtime/packs/task-file.ts'
import { generateSpecs, loadEnvironments } from './environments.ts'
import { settingsHint } from './settings-hint.ts'
import type { Streams } from './streams.ts'

/** One line of the answer. `task` is the spec's own id; the path where the spec has none. */
interface Verdict {
  task: string
  ok: boolean
  problems: TaskProblem[]
}

/** What is to be validated, read but not yet judged. */
interface Candidate {
  /** As the command line names it, or its pack. */
  path: string
  environment: string
  file: TaskFile
  /** Another file of the same pack with the same id. */
  twin?: string
}

export interface ValidateOptions {
  /** User environments by name, as in paddock.yaml. */
  environments: Record<string, string>
  /** The environment of files that are given by themselves. */
  environment: string
}

/** Writes the lines, and to standard error the packs' hashes and a summary. Gives the exit code: 1 if a task is not ok. */
export async function validate(
  paths: readonly string[],
  { environments, environment }: ValidateOptions,
  streams: Streams = process,
): Promise<number> {
  const shipped = await readPacks({ packs: [], shipped_packs: true })
  const given = await Promise.all(paths.map(packOf))
  const sources = gradersOf([...shipped, ...given.flatMap((pack) => pack ?? [])])
  const known = await loadEnvironments(environments, sources)
  const candidates: Candidate[] = []
  for (const [index, path] of paths.entries()) {
    const own = given[index]?.environment ?? environment
    const found = await candidatesOf(path, own, known)
    if (found.about) streams.stderr.write(`${found.about}\n`)
    candidates.push(...found.candidates)
  }
  const bar = progressBar(candidates.length, streams)
  let failed = 0
  for (const candidate of candidates) {
    const verdict = await judge(candidate, known)
    if (!verdict.ok) failed++
    streams.stdout.write(`${JSON.stringify(verdict)}\n`)
    bar.increment()
  }
  bar.stop()
  const tasks = `${candidates.length} ${candidates.length === 1 ? 'task' : 'tasks'}`
  streams.stderr.write(`${tasks}, ${candidates.length - failed} ok, ${failed} not ok\n`)
  return failed > 0 ? 1 : 0
}

/** The pack at a path, or the one that the file lies in: its graders and its environment are the file's too. */
function packOf(path: string): Promise<Pack | null> {
  return readPack(path).catch(() => packAround(path))
}

type Environments = ReadonlyMap<string, Environment>

/** The tasks behind a path: of a pack all of them, else one. A path that leads nowhere is a task that cannot be read. */
async function candidatesOf(
  path: string,
  environment: string,
  known: Environments,
): Promise<{ candidates: Candidate[]; about?: string }> {
  const isFolder = await stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  )
  if (!isFolder)
    return { candidates: [{ path, environment, file: await readTaskFile(path, path) }] }
  try {
    const pack = await readPack(path)
    const files = pack.generated
      ? generateSpecs(pack, known).map((spec): TaskFile => ({ file: path, spec }))
      : pack.files
    const firstOf = new Map<string, TaskFile>()
    const candidates = files.map((file) => {
      const twin = firstOf.get(nameOf(file))
      if (!twin) firstOf.set(nameOf(file), file)
      return { path, environment: pack.environment, file, ...(twin && { twin: twin.file }) }
    })
    return { candidates, about: `pack ${pack.name} (${path}): content sha256 ${pack.hash}` }
  } catch (error) {
    if (!(error instanceof PaddockError)) throw error
    return { candidates: [{ path, environment, file: unreadable(path, 'a pack', error.message) }] }
  }
}

async function judge(
  { path, environment, file, twin }: Candidate,
  known: Environments,
): Promise<Verdict> {
  if ('problem' in file) return { task: file.file, ok: false, problems: [file.problem] }
  const world = known.get(environment)
  const problems = world
    ? world.problems(file.spec, 'full')
    : [await unknownEnvironment(environment, path, known)]
  if (twin !== undefined) problems.push(repeatedId(file.spec.id, twin))
  return { task: nameOf(file), ok: problems.length === 0, problems }
}

function nameOf(file: TaskFile): string {
  const id = 'spec' in file ? file.spec.id : null
  return typeof id === 'string' && id !== '' ? id : file.file
}

async function unknownEnvironment(
  name: string,
  path: string,
  known: Environments,
): Promise<TaskProblem> {
  const names = [...known.keys()].join(', ')
  const hint = await settingsHint(name, path)
  const message = `V01 spec: expected an environment of (${names}), found ${name}; ${hint}`
  return { rule: 'V01', path: '', expected: names, found: name, message }
}

function repeatedId(id: unknown, twin: string): TaskProblem {
  const expected = 'an id that no other task of the pack has'
  const found = `${JSON.stringify(id)}, which is that of ${twin} too`
  const message = `V01 id: expected ${expected}, found ${found}; rename one of the two`
  return { rule: 'V01', path: 'id', expected, found, message }
}

/** A bar on a terminal; nothing in a pipe, where the lines themselves show how far it is. */
function progressBar(total: number, { stderr }: Streams): { increment(): void; stop(): void } {
  if (!stderr.isTTY) return { increment: () => {}, stop: () => {} }
  const bar = new SingleBar({ format: 'Tasks {bar} {value}/{total}', stream: stderr })
  bar.start(total, 0)
  return bar
}
