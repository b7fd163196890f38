// A house with something to look at: rewards that differ, failures, a refused call, policy versions, a batch under way.
import type { JsonObject } from '../../protocol/json.ts'
import { arithmeticRequest, type House, openHouse } from '../testkit/house.testkit.ts'

const OFFICE = [
  'office/dev-01-overdue-premium-invoices',
  'office/dev-02-integrations-without-leaking',
  'office/dev-03-meeting-items-to-tracker',
  'office/dev-04-interview-slot',
  'office/mt-03-hotel-with-consent',
  'office/zh-03-minutes-to-todos',
]
const SUMS = [0, 1, 2, 3].map((index) => `arithmetic/sum-${index}`)

/** The mix of the demo: see server/commands/demo.ts. */
const MIX = {
  correct: 0.5,
  wrong: 0.25,
  forbidden: 0.1,
  malformed: 0.1,
  truncated: 0.03,
  prose: 0.02,
}

/** `step-39` has chains that were cut and weights that were updated meanwhile; `step-40` (office) and `step-41` (sums; one group lost to its backend) are done; `step-42` runs until it is let go. */
export async function openGallery(settings: JsonObject = {}): Promise<House> {
  const style = { format: 'hermes', thinking: true, mix: MIX } as const
  const house = await openHouse({
    office: true,
    simulator: { style },
    settings: { dashboard: { interval_s: 1 }, ...settings },
  })
  await runThroughUpdate(house)
  await house.run(batch('step-40', OFFICE))
  await house.setFaults({ kind: '500', rate: 1, match: arithmeticRequest(3) })
  await house.run(
    batch('step-41', SUMS, { groups: { attempts: 1 }, limits: { turn_timeout_s: 2 } }),
  )
  await house.setFaults({ kind: 'hang', rate: 0.2, turns: [1] })
  await house.api.submit(batch('step-42', OFFICE.slice(0, 4)))
  return house
}

/**
 * The engine renders, and a tag of the third turn was sampled as several ids: the next prompt has one in their place. After the
 * first turn of all, new weights come.
 */
async function runThroughUpdate(house: House): Promise<void> {
  const policy = { backend: 'sglang', mode: 'chat', sampling: { temperature: 1 } }
  const request = batch('step-39', [OFFICE[0] as string], { policy, group_size: 4 })
  await house.setFaults({ kind: 'spelled', turns: [3] })
  await house.api.submit(request)
  const { body } = await fetch(`${house.url}/v1/batches/step-39/events`)
  const events = body?.getReader()
  await events?.read()
  await fetch(`${house.policyUrl}/update_weight_version`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ new_version: '1', abort_all_requests: false }),
  })
  await events?.cancel()
  await house.run(request)
  await house.setFaults()
}

function batch(id: string, tasks: string[], more: JsonObject = {}): JsonObject {
  return {
    id,
    tasks: tasks.map((task) => ({ task })),
    group_size: 8,
    policy: { mode: 'tokens', thinking: 'auto', sampling: { temperature: 1 } },
    reward: { reads: ['score'] },
    ...more,
  }
}
