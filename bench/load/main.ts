// The load driver: turns a second of a running server, beside a bare loop that posts the same bytes to the same policy.
import { Command } from 'commander'
import { bareLoop, preparedRequests } from './bare-loop.ts'
import { formatReport, type Round, summarize } from './report.ts'
import { createLoad } from './server-load.ts'

const program = new Command('load')
  .requiredOption('--url <url>', 'the server')
  .requiredOption('--policy-url <url>', 'the simulator behind it, started with --prepared')
  .requiredOption('--tasks <ids>', 'comma-separated task ids')
  .option('--seconds <number>', 'length of each measurement', Number, 8)
  .option('--rounds <number>', 'how often server and bare loop take turns', Number, 3)
  .option('--concurrency <number>', 'requests in flight in the bare loop', Number, 64)
  .option('--json', 'one JSON object instead of a table', false)

const flags = program.parse().opts<{
  url: string
  policyUrl: string
  tasks: string
  seconds: number
  rounds: number
  concurrency: number
  json: boolean
}>()

const load = createLoad(flags.url, flags.tasks.split(','))
// Once around, so that every reply lies prepared and every path is compiled.
const total = 1 + 2 * flags.rounds
let done = 0
/** Whoever started this program may show it. */
const measured = () => process.send?.({ done: ++done, total })
await load.warm()
measured()
const requests = await preparedRequests(flags.policyUrl)
const rounds: Round[] = []
for (let round = 0; round < flags.rounds; round++) {
  const server = await load.measure(flags.seconds)
  measured()
  const bare = await bareLoop(flags.policyUrl, requests, flags.concurrency, flags.seconds)
  measured()
  rounds.push({ server, bare })
}
const stats = await (await fetch(`${flags.policyUrl}/simulator/stats`)).json()
const report = summarize(rounds, stats as { prepared?: { cpu_us_per_reply: number | null } })
process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : `${formatReport(report)}\n`)
