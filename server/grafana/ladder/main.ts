// `pnpm ladder`: real server, real Prometheus, one fault at a time; a table of fault, alert and seconds, and every panel.
import { createDashboard } from '../dashboard.ts'
import { filledIn } from '../filled-in.ts'
import { alertRules, WINDOWS } from '../rules.ts'
import { CASES, NOT_PLANTED } from './cases.ts'
import { type Climbed, climb } from './climb.ts'
import { SHORT_WINDOW } from './lane.ts'

/** Houses at once: each is a server, a simulator and a Prometheus. */
const AT_ONCE = 6

const only = process.argv.slice(2)
const cases = CASES.filter(({ alerts }) => only.length === 0 || only.includes(alerts[0] ?? ''))
const panels = createDashboard().panels.flatMap((panel) =>
  panel.type === 'row'
    ? []
    : panel.targets.map(({ expr }) => ({
        panel: panel.title,
        query: filledIn(expr, SHORT_WINDOW, '60s'),
      })),
)
const queries = panels.map(({ query }) => query)

const started = performance.now()
const climbed: Climbed[] = []
const waiting = [...cases]
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      const { fault } = one
      const done = await climb(one, queries).catch(
        (error: Error): Climbed => ({
          fault,
          fired: [],
          problems: [error.message],
          drawn: new Set(),
        }),
      )
      climbed.push(done)
      for (const { alert, seconds } of done.fired)
        console.log(`${fault.padEnd(62)} ${alert.padEnd(22)} ${seconds?.toFixed(1) ?? 'never'}`)
      for (const problem of done.problems) console.log(`!! ${fault}: ${problem}`)
    }
  }),
)

const drawn = new Set(climbed.flatMap((one) => [...one.drawn]))
const empty = panels.filter(({ query }) => !drawn.has(query))
for (const { panel, query } of empty) console.log(`!! panel ${panel} shows nothing: ${query}`)
const told = new Set([...CASES.flatMap(({ alerts }) => alerts), ...NOT_PLANTED])
const untold = alertRules(WINDOWS).filter(({ alert }) => !told.has(alert))
for (const { alert } of untold) console.log(`!! no fault brings ${alert}`)

const silent = climbed.flatMap(({ fired }) => fired).filter(({ seconds }) => seconds === null)
const problems = climbed.flatMap((one) => one.problems)
const seconds = ((performance.now() - started) / 1000).toFixed(0)
console.log(
  `${climbed.length} faults, ${drawn.size} of ${new Set(queries).size} queries with data, in ${seconds} s`,
)
const failed = silent.length + problems.length + untold.length + (only.length ? 0 : empty.length)
process.exitCode = failed === 0 ? 0 : 1
