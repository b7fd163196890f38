// One thread: what it answered counts even where it dies right after, and nobody else is blamed for that.
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { writeLab } from '../../testkit/lab-environment.testkit.ts'
import type { Job } from './jobs.ts'
import { createLane } from './lane.ts'

const lab = writeLab()

/** Each of these leaves something behind that ends its thread after it has answered well. */
test.each([
  ['a rejection that nobody handles', "Promise.reject(new Error('late'))"],
  ['an error in a callback', "setImmediate(() => { throw new Error('late') })"],
  ['an exit in a callback', 'setImmediate(() => process.exit(3))'],
])(
  'the job behind one that leaves %s is not charged with it',
  async (_, late) => {
    const module = lab.flag(`late-${late.length}.mjs`)
    writeFileSync(
      module,
      `import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
    export default { ...lab, problems(spec) { if (spec.late) ${late}; return [] } }`,
    )
    const charged: (Job | null)[] = []
    const answered: Job[] = []
    const inspect = (id: string): Job => ({
      kind: 'inspect',
      input: {
        tasks: [{ environment: 'lab', id, spec: { request: 'Measure.', late: id === 'late' } }],
        gate: 'load',
      },
    })
    const [poison, next] = [inspect('late'), inspect('next')]
    await new Promise<void>((resolve, reject) => {
      const waiting = [poison, next]
      /** At once after an answer, so that it reaches the thread before its death, or just after. */
      const goOn = () => {
        const job = waiting.shift()
        if (job) lane.give([job])
        else if (answered.length === 2) lane.close().then(resolve, reject)
      }
      const lane = createLane<Job>(
        {
          environments: { lab: pathToFileURL(module).href },
          models: {},
          maxTurnSeconds: 60,
          heapMb: 96,
        },
        {
          answered: (batch) => void answered.push(...batch),
          handedBack: (jobs) => void waiting.unshift(...jobs),
          hasRoom: goOn,
          lost(unanswered, failed) {
            charged.push(failed)
            waiting.unshift(...unanswered)
            lane.start().then(goOn, reject)
          },
          diedIdle() {
            if (answered.length < 2) lane.start().then(goOn, reject)
            else goOn()
          },
        },
      )
      lane.start().then(goOn, reject)
    })
    expect(answered).toEqual([poison, next])
    for (const one of charged) expect(one).toBe(null)
  },
  120_000,
)
