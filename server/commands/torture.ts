// `paddock torture`: a server of its own, killed again and again; exit code 1 where a promise was broken.
import { type TortureOptions, type TortureResult, torture } from '../torture/torture.ts'
import { progressBar } from './progress-bar.ts'
import type { Streams } from './streams.ts'

/** The report as text, or with `json` as one object; how far it is, beside it. */
export async function runTorture(
  { json, ...options }: Omit<TortureOptions, 'onLine' | 'onKill'> & { json: boolean },
  { stdout, stderr }: Pick<Streams, 'stdout' | 'stderr'> = process,
): Promise<number> {
  stderr.write(`seed ${options.seed}\n`)
  const bar = progressBar('Kills', options.kills, stderr)
  const result = await torture({ ...options, onKill: bar.update }).finally(bar.stop)
  const tooFew = result.kills < Math.min(options.kills, options.minKills)
  const broken = Object.values(findings(result)).some((found) => found.length > 0)
  const report = { seed: options.seed, fault: options.fault, ...result }
  stdout.write(json ? `${JSON.stringify(report)}\n` : reportText(report))
  if (tooFew) stderr.write(`only ${result.kills} of at least ${options.minKills} kills were done\n`)
  return tooFew || broken ? 1 : 0
}

function findings({ lost, twice, forgotten, repeated }: TortureResult) {
  return {
    'finished episodes lost': lost,
    'groups acknowledged twice': twice,
    'groups forgotten': forgotten,
    'episodes with more than one request repeated by one kill': repeated,
  }
}

function reportText(report: TortureResult & Pick<TortureOptions, 'seed' | 'fault'>): string {
  const { kills, episodes, acked, repeats, trainerDeaths, restartSeconds, seconds, fault } = report
  const found = Object.entries(findings(report)).flatMap(([name, all]) => [
    `${all.length} ${name}`,
    ...all.slice(0, 5).map((one) => `  ${one}`),
  ])
  return [
    ...found,
    `${kills} ${fault ? `ends by ${fault}` : 'kills'} and ${trainerDeaths} deaths of the trainer over ${episodes} episodes, ${acked} groups acknowledged, ` +
      `${repeats} requests repeated; a restart takes ${restartSeconds.toFixed(2)} s; ${seconds.toFixed(0)} s in all`,
    '',
  ].join('\n')
}
