// `paddock torture`: a server of its own, killed again and again; exit code 1 where a promise was broken.
import { type TortureOptions, torture } from '../torture/torture.ts'

export async function runTorture(options: Omit<TortureOptions, 'onLine'>): Promise<number> {
  process.stdout.write(`seed ${options.seed}\n`)
  const result = await torture({ ...options, onLine: (text) => process.stdout.write(`${text}\n`) })
  const { lost, twice, forgotten, repeated, ...figures } = result
  const count = {
    'finished episodes lost': lost,
    'groups acknowledged twice': twice,
    'groups forgotten': forgotten,
    'episodes with more than one request repeated by one kill': repeated,
  }
  for (const [name, found] of Object.entries(count)) {
    process.stdout.write(`${found.length} ${name}\n`)
    for (const one of found.slice(0, 5)) process.stdout.write(`  ${one}\n`)
  }
  const { kills, episodes, acked, repeats, trainerDeaths, restartSeconds, seconds } = figures
  process.stdout.write(
    `${kills} ${options.fault ? `ends by ${options.fault}` : 'kills'} and ${trainerDeaths} deaths of the trainer over ${episodes} episodes, ${acked} groups acknowledged, ` +
      `${repeats} requests repeated; a restart takes ${restartSeconds.toFixed(2)} s; ${seconds.toFixed(0)} s in all\n`,
  )
  const tooFew = kills < Math.min(options.kills, options.minKills)
  if (tooFew)
    process.stdout.write(`only ${kills} of at least ${options.minKills} kills were done\n`)
  return !tooFew && Object.values(count).every((found) => found.length === 0) ? 0 : 1
}
