// The walls of the house: what a room may not import or call is a lint error, and what it may is none.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const ORDER = ['protocol', 'reward', 'envs', 'rollout', 'server'] as const
const ALL = [...ORDER, 'bench'] as const

/** Room, text, and whether the walls forbid it. */
const CASES: [file: string, text: string, forbidden: boolean][] = [
  ...ORDER.flatMap((room, at) =>
    ALL.filter((other) => other !== room).map((other): (typeof CASES)[number] => {
      const allowed = ORDER.indexOf(other as (typeof ORDER)[number])
      return [
        `${room}/deep/imports-${other}.ts`,
        `import { x } from '../../${other}/x.ts'\nexport const y = x\n`,
        allowed < 0 || allowed > at,
      ]
    }),
  ),
  ...(['reward', 'envs', 'rollout', 'server'] as const).map((other): (typeof CASES)[number] => [
    `bench/deep/imports-${other}.ts`,
    `import { x } from '../../${other}/x.ts'\nexport const y = x\n`,
    true,
  ]),
  [
    'bench/deep/imports-protocol.ts',
    "import { x } from '../../protocol/x.ts'\nexport const y = x\n",
    false,
  ],
  ...(['protocol', 'reward', 'envs', 'rollout'] as const).flatMap((room): typeof CASES => [
    [`${room}/deep/clock.ts`, 'export const now = () => Date.now()\n', true],
    [`${room}/deep/date.ts`, 'export const now = () => new Date()\n', true],
    [`${room}/deep/dice.ts`, 'export const dice = () => Math.random()\n', true],
    [`${room}/deep/timer.ts`, 'export const wait = (f: () => void) => setTimeout(f, 1)\n', true],
    [`${room}/deep/fetches.ts`, "export const get = () => fetch('http://x')\n", true],
    [`${room}/deep/env.ts`, 'export const home = () => process.env.HOME\n', true],
    [
      `${room}/deep/files.ts`,
      "import { readFile } from 'node:fs/promises'\nexport const y = readFile\n",
      true,
    ],
    [
      `${room}/deep/hash.ts`,
      "import { createHash } from 'node:crypto'\nexport const y = createHash\n",
      false,
    ],
    [`${room}/deep/given-date.ts`, 'export const at = (ms: number) => new Date(ms)\n', false],
  ]),
]

let refused: Set<string>
beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-rooms-'))
  for (const file of ['biome.json', 'pure.grit']) copyFileSync(join(root, file), join(folder, file))
  for (const [file, text] of CASES) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  const biome = createRequire(import.meta.url).resolve('@biomejs/biome/bin/biome')
  const flags = ['lint', '--vcs-enabled=false', '--reporter=json', '--max-diagnostics=none', '.']
  const { stdout } = spawnSync(process.execPath, [biome, ...flags], {
    cwd: folder,
    encoding: 'utf8',
  })
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { severity: string; location: { path: string | { file: string } } }[]
  }
  refused = new Set(
    diagnostics
      .filter(({ severity }) => severity === 'error')
      .map(({ location: { path } }) => (typeof path === 'string' ? path : path.file)),
  )
}, 60_000)

describe('the walls', () => {
  test.each(CASES)('%s: %j is forbidden: %s', (file, _, forbidden) => {
    expect([...refused].some((path) => path.endsWith(file))).toBe(forbidden)
  })
})
