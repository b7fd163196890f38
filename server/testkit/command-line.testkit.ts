// The command line as its users start it, a process of its own from the sources, and the verbs that it lists.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))

export async function paddock(args: string[], input: string | Uint8Array = '', env = {}) {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...args], {
    env: { ...process.env, ...env },
  })
  child.stdin.end(input)
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  return { out, err, code }
}

/** Verbs that have others under them. */
const NESTED = ['new', 'bench', 'ledger']

/** Every verb that can be run, as the words that name it. */
export async function verbs(): Promise<string[][]> {
  const top = await verbsUnder()
  const under = await Promise.all(
    NESTED.map(async (name) => (await verbsUnder(name)).map((verb) => [name, verb])),
  )
  return [...top.filter((name) => !NESTED.includes(name)).map((name) => [name]), ...under.flat()]
}

/** Names of the verbs that a help lists. */
async function verbsUnder(...path: string[]): Promise<string[]> {
  const { out } = await paddock([...path, '--help'])
  const listed = out.slice(out.indexOf('Commands:')).matchAll(/^ {2}(\w+)/gm)
  return [...listed].flatMap(([, name]) => (name && name !== 'help' ? [name] : []))
}
